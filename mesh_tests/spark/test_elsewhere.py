"""Logs that only Spark can look at, as in HDFS or S3: here behind a file system of Hadoop that leads back here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from linklogs.input_logs import files, look
from linklogs.job import main
from linklogs.log_search import NoLogs
from linklogs.moments import TimeSpan
from linklogs.replay.run import Params, Tables, run
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.installed import require
from mesh_tests.link_logs import START_US, S, connection, delivery, line, link, node, write
from mesh_tests.spark.conftest import STARTS_JAVA, java_version
from mesh_tests.spark.reports import WINDOW_US, only, report
from mesh_tests.spark.test_command import FEW, command

pytestmark = STARTS_JAVA
HOUR_US = 3600 * S


def mounted(spark: SparkSession, directory: Path) -> str:
    """The path under which Hadoop has it; a name of its own, as Hadoop remembers what it once was."""
    name = f"test{abs(hash(directory))}"
    spark.conf.set(f"fs.viewfs.mounttable.{name}.link./logs", directory.as_uri())
    return f"viewfs://{name}/logs"


def elsewhere(spark: SparkSession, path: str, **span: int) -> Tables:
    return run(spark, Params(look(path, TimeSpan(**span)), WINDOW_US))


def test_a_path_that_only_spark_reads_has_the_same_files_and_the_same_totals(
    spark: SparkSession, tmp_path: Path
) -> None:
    line(tmp_path)
    path = mounted(spark, tmp_path)
    wanted, found = (
        {(row.node, row.path.removeprefix(each)) for row in files(spark, look(each, TimeSpan())).collect()}
        for each in (str(tmp_path), path)
    )
    assert found == wanted
    assert len(found) == 2
    there, here = elsewhere(spark, path), report(spark, tmp_path)
    assert there.by_name["mesh"].collect() == here.by_name["mesh"].collect()
    assert there.read == here.read


def test_hours_of_another_time_are_not_read_and_a_torn_file_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    line(tmp_path, 30)
    torn = tmp_path / "node=r2" / "hour=2026-11-23T20" / "1-0.parquet"
    torn.parent.mkdir()
    torn.write_bytes(b"PAR1 and no more")
    path = mounted(spark, tmp_path)
    cut, whole = elsewhere(spark, path, from_us=START_US), elsewhere(spark, path)
    for tables in (cut, whole):
        assert only(tables.by_name["mesh"], side="in").messages == 30
    assert cut.read.notices == ()
    (notice,) = whole.read.notices
    assert notice.startswith(f"{path}/node=r2/hour=2026-11-23T20/1-0.parquet is incomplete, or not a Parquet file")


def test_what_is_of_something_else_is_named_and_the_rest_is_read(spark: SparkSession, tmp_path: Path) -> None:
    line(tmp_path, 30)
    told = (tmp_path / "node=r2" / "hour=2026-11-24T00" / "1-0.parquet").read_bytes()
    strange = ("other/x.parquet", "node=r2/x.parquet", "node=r2/hour=bogus/x.parquet", "node=r2/x=1/x.parquet", "a.txt")
    for name in (*strange, "_truth.json", "node=r2/hour=2026-11-24T00/deeper/x.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(told)
    path = mounted(spark, tmp_path)
    for span in ({}, {"from_us": START_US}):
        tables = elsewhere(spark, path, **span)
        assert only(tables.by_name["mesh"], side="in").messages == 30
        assert {notice.partition(" is not part of a link log: ")[0] for notice in tables.read.notices} == {
            f"{path}/{name}" for name in ("other", "a.txt", "node=r2/x.parquet", "node=r2/hour=bogus", "node=r2/x=1")
        }


def test_a_directory_without_logs_is_said(spark: SparkSession, tmp_path: Path) -> None:
    path = mounted(spark, tmp_path)
    with pytest.raises(NoLogs, match=f"no link logs in {path}: expected node=NAME/hour="):
        elsewhere(spark, path)
    (tmp_path / "node=r1").mkdir()
    with pytest.raises(NoLogs, match=path):
        elsewhere(spark, path)


def test_a_path_where_nothing_is_is_said(spark: SparkSession, tmp_path: Path) -> None:
    path = mounted(spark, tmp_path)
    with pytest.raises(NoLogs, match=f"{path}/none cannot be read: "):
        elsewhere(spark, f"{path}/none")


def test_the_job_reads_it_too_and_says_which_file_is_torn(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line(tmp_path / "logs", 20)
    path, out = mounted(spark, tmp_path / "logs"), str(tmp_path / "out")
    (tmp_path / "logs" / "node=r2" / "hour=2026-11-24T00" / "1-1.parquet").write_bytes(b"PAR1 and no more")
    assert main([path, out]) == 0
    torn = f"{path}/node=r2/hour=2026-11-24T00/1-1.parquet is incomplete, or not a Parquet file"
    assert f"left out: {torn}" in capsys.readouterr().err
    (row,) = spark.read.parquet(f"{out}/report").collect()
    assert (row.logs, row.records > 40) == (path, True)
    assert row.left_out[0].startswith(torn)


def test_the_command_reports_the_rest_and_says_which_file_is_torn(tmp_path: Path) -> None:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    said = [node(), connection(1, "client"), link(1, "producer", "incoming", address="a"), delivery(1, 1, 0)]
    write(tmp_path / "logs", "r1", said)
    (tmp_path / "logs" / "node=r1" / "hour=2026-11-24T00" / "1-1.parquet").write_bytes(b"PAR1 and no more")
    mount = f"spark.hadoop.fs.viewfs.mounttable.all.link./logs={(tmp_path / 'logs').as_uri()}"
    done = command("viewfs://all/logs", "--out", str(tmp_path / "report"), "--json", *FEW, "--conf", mount)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "Traceback" not in done.stderr
    told = json.loads(done.stdout)
    assert (told["records"], [total["messages"] for total in told["totals"]]) == (len(said), [1])
    (left_out,) = told["left_out"]
    assert left_out.startswith("viewfs://all/logs/node=r1/hour=2026-11-24T00/1-1.parquet is incomplete")
