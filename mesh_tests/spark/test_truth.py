"""A report of made-up link logs says what their ground truth says: counts exactly, percentiles as near as is stated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import Row, SparkSession

from mesh.commands.cli import cli
from mesh_tests.spark.reports import report
from recording.columns import BUCKET_ERROR

DEMO = Path(__file__).resolve().parents[2] / "topologies" / "demo.yml"
OUTCOMES = ("accepted", "rejected", "released", "modified", "none", "aborted", "sender_lost")

MOVED = ("enqueued", "dequeued", "expired", "dead_lettered")
Truth = dict[str, Any]


TROUBLED = """
duration: 20m
outages:
  - {router: r3, at: 3m, for: 30s}
  - {broker: b1, at: 7m, for: 30s, stopped: true}
  - {router: r1, at: 11m, for: 30s, stopped: true}
  - {link: [r1, r2], at: 15m, for: 30s}
stalled: {links: 60%, every: 1m, for: 10s}
addresses: {prices.#: {settled: 60%}, orders: {dead_lettered: 5%}, rpc.#: {}}
"""


def made_up(folder: Path, level: str, *more: str) -> Truth:
    arguments = ["linklogs", "generate", "-t", str(DEMO), "--out", str(folder), "--records", "200k", "--level", level]
    done = CliRunner().invoke(cli, [*arguments, "--seed", "7", *more])
    assert done.exit_code == 0, done.output
    truth: Truth = json.loads((folder / "_truth.json").read_text())
    return truth


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


def test_what_went_wrong_is_in_the_report(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "traffic.yml").write_text(TROUBLED)
    truth = made_up(tmp_path / "logs", "summary", "--profile", str(tmp_path / "traffic.yml"))
    tables = report(spark, tmp_path / "logs").by_name
    ends = {(row["node"], row["restart"]): row["ending"] for row in tables["runs"].collect()}
    assert ends == {
        ("r1", 0): "stopped", ("r1", 1): None, ("r2", 0): None, ("r3", 0): "crashed", ("r3", 1): None,
        ("b1", 0): "stopped", ("b1", 1): None,
    }  # fmt: skip
    lost = [(row["node"], row["neighbor"], row["why"]) for row in tables["outages"].collect()]
    assert sorted(lost) == [
        ("r1", "r2", "connection"),
        ("r1", "r2", "itself"),
        ("r1", "r3", "crashed"),
        ("r1", "r3", "itself"),
        ("r2", "r1", "connection"),
        ("r2", "r1", "stopped"),
        ("r2", "r3", "crashed"),
        ("r3", "r1", "stopped"),
    ]
    missed = {(row["node"], row["run"], row["link"]): row["messages"] for row in tables["drops"].collect()}
    told = {(each["node"], each["run"], each["link"]): each["missed"] for each in truth["links"] if each["missed"]}
    assert missed == told
    assert sum(told.values()) > 100
    moved = {event: sum(row[event] for row in tables["queues"].collect()) for event in MOVED}
    assert moved == {event: sum(each[event]["messages"] for each in truth["queues"]) for event in MOVED}
    assert moved["dead_lettered"] > 0


def check(row: Row, truth: Truth) -> None:
    sent, latency = truth["sent"], truth["latency_us"]["sent"]
    assert (row["messages"], row["size_bytes"]) == (sent["messages"], sent["size_bytes"])
    assert {name: row[name] for name in OUTCOMES if row[name]} == sent["outcomes"]
    assert row["max_us"] == latency["max_us"]
    for name in ("p50_us", "p95_us", "p99_us"):
        assert row[name] == pytest.approx(latency[name], rel=BUCKET_ERROR, abs=1), name
