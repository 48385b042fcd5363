"""The tables without the command: what runs under spark-submit."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from linklogs.job import main
from linklogs.private_files import DIRECTORY_MODE, FILE_MODE
from mesh_tests.link_logs import line
from mesh_tests.spark.conftest import STARTS_JAVA
from mesh_tests.spark.test_command import command

pytestmark = STARTS_JAVA


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the job writes in a process that would let others read its files."""
    folder = tmp_path_factory.mktemp("job")
    line(folder / "logs", 20)
    before = os.umask(0o022)
    try:
        assert main([str(folder / "logs"), str(folder / "out"), "--address", "ord*", "--window", "5"]) == 0
    finally:
        os.umask(before)
    return folder / "out"


def test_the_job_writes_the_tables(spark: SparkSession, written: Path) -> None:
    assert {row.messages for row in spark.read.parquet(str(written / "mesh")).collect()} == {20}
    windows = spark.read.parquet(str(written / "mesh_by_window")).select("window").distinct().collect()
    assert sorted(row.window.second for row in windows) == [0, 5, 10, 15]


def test_only_owner_and_group_may_read_what_the_job_writes(written: Path) -> None:
    modes = {stat.S_IMODE(path.stat().st_mode) for path in written.rglob("*") if path.name[0] != "."}
    assert {oct(mode) for mode in modes} == {oct(FILE_MODE), oct(DIRECTORY_MODE)}


def test_where_no_address_matches_the_page_made_elsewhere_names_those_that_are_closest(tmp_path: Path) -> None:
    line(tmp_path / "logs", 20)
    assert main([str(tmp_path / "logs"), str(tmp_path / "out"), "--address", "odrers"]) == 0
    told = command("--tables", str(tmp_path / "out"), "--out", str(tmp_path / "page"))
    assert "no address matches 'odrers'; the closest: orders" in told.stdout


def test_the_job_says_in_a_sentence_that_there_are_no_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.startswith(f"error: no link logs in {tmp_path}")


def test_the_job_needs_nothing_of_amqpmesh_but_the_link_logs() -> None:
    script = (
        "import sys, linklogs.job\n"
        "packages = ('addressing', 'wire', 'recording', 'router', 'broker', 'mesh')\n"
        "ours = {name for name in sys.modules if name.split('.')[0] in packages}\n"
        "print(sorted(ours))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['addressing', 'addressing.address', 'recording', 'recording.columns']"
