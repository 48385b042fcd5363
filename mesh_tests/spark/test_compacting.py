"""Reports while `amqpmesh linklogs compact` is at the same files: each record counts once, whoever is first."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from linklogs.compaction import compact
from linklogs.file_holds import held
from linklogs.input_logs import look
from linklogs.moments import TimeSpan
from linklogs.replay.run import Params, run
from mesh_tests.installed import require
from mesh_tests.link_logs import connection, delivery, link, node, write
from mesh_tests.spark.conftest import STARTS_JAVA, java_version
from mesh_tests.spark.reports import WINDOW_US, only
from mesh_tests.spark.test_command import FEW

pytestmark = STARTS_JAVA
LATER = datetime(2026, 11, 25, tzinfo=UTC)
FILES = 5


def many_files(root: Path) -> None:
    """Of one hour of r1, with ten messages each."""
    said = [node(), connection(1, "client"), link(1, "producer", "incoming", address="a")]
    for number in range(FILES):
        moved = [delivery(number, 1, 0) for _ in range(10)]
        write(root, "r1", [*(said if number == 0 else []), *moved], name=f"1-{number}")


def messages(spark: SparkSession, params: Params) -> int:
    found: int = only(run(spark, params).by_name["mesh"]).messages
    return found


def test_files_that_are_merged_after_they_were_found_count_once(spark: SparkSession, tmp_path: Path) -> None:
    many_files(tmp_path)
    with held(str(tmp_path)):
        params = Params(look(str(tmp_path), TimeSpan()), WINDOW_US)
        report = compact(tmp_path, LATER)
        assert (report.files_after, report.put_off, report.findings) == (FILES + 1, FILES, ())
        assert messages(spark, params) == 10 * FILES
    assert compact(tmp_path, LATER).files_after == 1
    assert messages(spark, Params(look(str(tmp_path), TimeSpan()), WINDOW_US)) == 10 * FILES


def test_no_file_goes_while_a_report_reads(tmp_path: Path) -> None:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    many_files(tmp_path / "logs")
    command = ("report", str(tmp_path / "logs"), "--out", str(tmp_path / "report"), "--json", *FEW)
    with subprocess.Popen(
        [sys.executable, "-m", "mesh", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stderr is not None
        assert any("read the records" in line for line in reader.stderr)
        put_off = compact(tmp_path / "logs", LATER).put_off
        said, _ = reader.communicate()
    assert put_off == FILES
    assert [row["messages"] for row in json.loads(said)["totals"]] == [10 * FILES]
    assert compact(tmp_path / "logs", LATER).files_after == 1
