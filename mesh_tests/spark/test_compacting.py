"""Reports while `amqpmesh linklogs compact` is at the same files: each record counts once, whoever is first."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from linklogs.compaction import compact
from linklogs.file_holds import held
from linklogs.input_logs import look
from linklogs.moments import TimeSpan
from linklogs.replay.run import Params, run
from mesh_tests.link_logs import connection, delivery, link, node, write
from mesh_tests.spark.reports import WINDOW_US, only

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
