"""`amqpmesh report` as a person runs it."""

import csv
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from linklogs.compaction import compact
from linklogs.private_files import DIRECTORY_MODE, FILE_MODE
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.installed import require
from mesh_tests.link_logs import delivery, line, write
from mesh_tests.spark.conftest import STARTS_JAVA, java_version

pytestmark = STARTS_JAVA
LATER = datetime(2026, 11, 25, tzinfo=UTC)
NODES = ("007", "r2")
# No generated code: to compile it takes a quarter of a report of few rows. Reports of a drill and on a cluster have it.
FEW = (
    *("--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=1"),
    *("--conf", "spark.sql.codegen.factoryMode=NO_CODEGEN"),
)


@dataclass(frozen=True, slots=True)
class Made:
    """A report that was made while the first `python3` on the PATH, `decoy`, failed whatever it was asked.

    While it read, `amqpmesh linklogs compact` came by, and put off ``put_off`` files.
    """

    done: subprocess.CompletedProcess[str]
    logs: Path
    out: Path
    decoy: Path
    put_off: int


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mesh", "report", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    folder = tmp_path_factory.mktemp("command")
    decoy = folder / "bin" / "python3"
    decoy.parent.mkdir()
    decoy.write_text("#!/bin/sh\nexit 1\n")
    decoy.chmod(0o755)
    logs, out = folder / "logs", folder / "report"
    line(logs, 60)
    for name in NODES:
        write(logs, name, [delivery(31, 1, 2)], name="1-1")
    (logs / "notes.txt").write_text("mine")
    asked = ("report", str(logs), "--out", str(out), "--json", "--tz", "Europe/Zurich", *FEW)
    environment = {**os.environ, "PATH": f"{decoy.parent}:{os.environ['PATH']}"}
    environment.pop("PYSPARK_PYTHON", None)
    # Standard output goes to a file, so that nothing waits for it while standard error is read.
    with (folder / "told").open("w+") as told, subprocess.Popen(
        [sys.executable, "-m", "mesh", *asked], stdout=told, stderr=subprocess.PIPE, text=True, env=environment
    ) as reader:  # fmt: skip
        assert reader.stderr is not None
        said = [*_until("read the records", reader.stderr)]
        put_off = compact(logs, LATER).put_off
        said += reader.stderr
        code = reader.wait()
        told.seek(0)
        done = subprocess.CompletedProcess(reader.args, code, told.read(), "".join(said))
    return Made(done, logs, out, decoy, put_off)


def _until(words: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines up to the one with these words."""
    for each in lines:
        yield each
        if words in each:
            return


def test_a_report_has_a_page_a_summary_and_tables(made: Made) -> None:
    assert made.done.returncode == ExitCode.OK, made.done.stderr
    told = json.loads(made.done.stdout)
    assert (told["schema"], told["from"], told["records"]) == ("amqpmesh.report/1", "2026-11-24 01:00:00+01:00", 132)
    assert told["left_out"] == [f"{made.logs}/notes.txt is not part of a link log: expected a directory node=..."]
    assert f"left out: {told['left_out'][0]}" in made.done.stderr
    assert "WARN" not in made.done.stderr
    assert json.loads((made.out / "summary.json").read_text())["totals"] == told["totals"]
    assert "1 finding" in (made.out / "report.html").read_text()
    with (made.out / "tables" / "mesh.csv").open(newline="") as file:
        assert [(row["side"], row["messages"]) for row in csv.DictReader(file)] == [("in", "61"), ("out", "61")]
    assert {path.stem for path in (made.out / "tables").glob("*.parquet")} == set(told["tables"])
    modes = {stat.S_IMODE(path.stat().st_mode) for path in made.out.rglob("*")}
    assert {oct(mode) for mode in modes} == {oct(FILE_MODE), oct(DIRECTORY_MODE)}


def test_workers_are_of_the_python_that_runs_the_report_whatever_the_path_has(made: Made) -> None:
    assert subprocess.run([made.decoy], check=False).returncode == 1
    assert made.done.returncode == ExitCode.OK, made.done.stderr


def test_no_file_goes_while_a_report_reads(made: Made) -> None:
    assert made.done.returncode == ExitCode.OK, made.done.stderr
    assert made.put_off == 2 * len(NODES)
    assert compact(made.logs, LATER).files_after == len(NODES)


def test_no_logs_are_one_sentence_and_an_exit_code(tmp_path: Path) -> None:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    done = command(str(tmp_path), "--out", str(tmp_path / "report"))
    assert done.returncode == ExitCode.FAILED
    assert done.stderr.splitlines()[-1].startswith(f"error: no link logs in {tmp_path}: expected node=NAME")
    assert not (tmp_path / "report").exists()


def test_a_topology_that_is_wrong_is_said_before_anything_starts(tmp_path: Path) -> None:
    done = command(str(tmp_path), "--out", str(tmp_path / "report"), "-t", str(tmp_path / "none.yml"))
    assert done.returncode == ExitCode.TOPOLOGY_INVALID
    assert not (tmp_path / "report").exists()


def test_tables_can_only_be_shown(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "report"))
    for wrong in (
        (),
        ("logs", "--tables", "tables"),
        ("--tables", "tables", "--from", "2026-11-24"),
        ("--tables", "tables", "-t", "x.yml"),
        ("--tables", "tables", "--tz", "Mars"),
    ):
        assert command(*wrong, *out).returncode == ExitCode.USAGE, wrong
    done = command("--tables", str(tmp_path), *out)
    assert done.returncode == ExitCode.FAILED
    assert f"error: {tmp_path} has no tables that spark-submit wrote: the directory report is missing" in done.stderr
