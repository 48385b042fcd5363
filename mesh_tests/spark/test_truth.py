"""A report of made-up link logs says what their ground truth says: counts exactly, percentiles as near as is stated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import Row, SparkSession

from addressing.link_log import BUCKET_ERROR
from mesh.cli import cli
from mesh_tests.spark.reports import report

DEMO = Path(__file__).resolve().parents[2] / "topologies" / "demo.yml"
OUTCOMES = ("accepted", "rejected", "released", "modified", "none", "aborted", "sender_lost")

Truth = dict[str, Any]


def made_up(folder: Path, level: str) -> Truth:
    arguments = ["linklogs", "generate", "-t", str(DEMO), "--out", str(folder), "--records", "200k", "--level", level]
    done = CliRunner().invoke(cli, [*arguments, "--seed", "7"])
    assert done.exit_code == 0, done.output
    truth: Truth = json.loads((folder / "_truth.json").read_text())
    return truth


@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", ["full", "summary"])
def test_what_clients_sent_to_each_address_is_counted_exactly_and_timed_as_stated(
    spark: SparkSession, tmp_path: Path, level: str
) -> None:
    truth = made_up(tmp_path / "logs", level)["addresses"]
    table = report(spark, tmp_path / "logs").by_name["addresses"]
    sent = {row["address"]: row for row in table.collect() if (row["side"], row["peer"]) == ("in", "client")}
    assert sent.keys() == {address for address, each in truth.items() if each["sent"]["messages"]}
    for address, row in sent.items():
        check(row, truth[address])


def check(row: Row, truth: Truth) -> None:
    sent, latency = truth["sent"], truth["latency_us"]["sent"]
    assert (row["messages"], row["size_bytes"]) == (sent["messages"], sent["size_bytes"])
    assert {name: row[name] for name in OUTCOMES if row[name]} == sent["outcomes"]
    assert row["max_us"] == latency["max_us"]
    for name in ("p50_us", "p95_us", "p99_us"):
        assert row[name] == pytest.approx(latency[name], rel=BUCKET_ERROR, abs=1), name
