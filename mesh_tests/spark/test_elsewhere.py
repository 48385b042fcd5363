"""Logs that only Spark can look at, as in HDFS or S3: here behind a file system of Hadoop that leads back here."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from linklogs.failures import FAILURES, sentence
from linklogs.finding import NoLogs
from linklogs.job import main
from linklogs.moments import Span
from linklogs.reading import look, records
from linklogs.replay.run import Params, run
from mesh.exit_codes import ExitCode
from mesh_tests.installed import require
from mesh_tests.link_logs import START_US, S, connection, delivery, line, link, node, write
from mesh_tests.spark.conftest import java_version
from mesh_tests.spark.reports import WINDOW_US, only, report, rows
from mesh_tests.spark.test_command import FEW, command

HOUR_US = 3600 * S


def mounted(spark: SparkSession, directory: Path) -> str:
    """The path under which Hadoop has it; a name of its own, as Hadoop remembers what it once was."""
    name = f"test{abs(hash(directory))}"
    spark.conf.set(f"fs.viewfs.mounttable.{name}.link./logs", directory.as_uri())
    return f"viewfs://{name}/logs"


def elsewhere(spark: SparkSession, path: str, **span: int) -> dict[str, Any]:
    return run(spark, Params(look(path, Span(**span)), WINDOW_US)).by_name


def test_a_path_that_only_spark_reads_has_the_same_records_and_the_same_totals(
    spark: SparkSession, tmp_path: Path
) -> None:
    line(tmp_path)
    path = mounted(spark, tmp_path)
    wanted, found = (records(spark, look(each, Span())).collect() for each in (str(tmp_path), path))
    assert Counter(found) == Counter(wanted)
    totals = [table["mesh"].collect() for table in (report(spark, tmp_path).by_name, elsewhere(spark, path))]
    assert totals[0] == totals[1]


def test_hours_of_another_time_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    line(tmp_path, 30)
    torn = tmp_path / "node=r2" / "hour=2026-11-23T20" / "1-0.parquet"
    torn.parent.mkdir()
    torn.write_bytes(b"PAR1 and no more")
    path = mounted(spark, tmp_path)
    assert only(elsewhere(spark, path, from_us=START_US)["mesh"], side="in").messages == 30
    with pytest.raises(FAILURES) as failed:
        elsewhere(spark, path)
    assert sentence(failed.value).startswith(
        f"{path}/node=r2/hour=2026-11-23T20/1-0.parquet is torn, or no Parquet file"
    )


def test_a_path_where_nothing_is_is_said(spark: SparkSession, tmp_path: Path) -> None:
    path = mounted(spark, tmp_path)
    with pytest.raises(NoLogs, match=f"{path}/none cannot be read: "):
        elsewhere(spark, f"{path}/none")


def test_the_job_reads_it_too_and_says_which_file_is_torn(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line(tmp_path / "logs", 20)
    path, out = mounted(spark, tmp_path / "logs"), str(tmp_path / "out")
    assert main([path, out]) == 0
    assert rows(spark.read.parquet(f"{out}/report"), "logs", "records") == {(path, None)}
    (tmp_path / "logs" / "node=r2" / "hour=2026-11-24T00" / "1-1.parquet").write_bytes(b"PAR1 and no more")
    assert main([path, out]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"error: {path}/node=r2/hour=2026-11-24T00/1-1.parquet is torn, or no Parquet file: "
        "take it away, and the others can be read"
    )


@pytest.mark.timeout(300)
def test_the_command_says_which_file_is_torn(tmp_path: Path) -> None:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    said = [node(), connection(1, "client"), link(1, "producer", "incoming", address="a"), delivery(1, 1, 0)]
    write(tmp_path / "logs", "r1", said)
    (tmp_path / "logs" / "node=r1" / "hour=2026-11-24T00" / "1-1.parquet").write_bytes(b"PAR1 and no more")
    mount = f"spark.hadoop.fs.viewfs.mounttable.all.link./logs={(tmp_path / 'logs').as_uri()}"
    done = command("viewfs://all/logs", "--out", str(tmp_path / "report"), "--json", *FEW, "--conf", mount)
    assert done.returncode == ExitCode.FAILED
    assert "Traceback" not in done.stderr
    message = json.loads(done.stdout)["error"]["message"]
    assert message.startswith("viewfs://all/logs/node=r1/hour=2026-11-24T00/1-1.parquet is torn")
