"""Java may end while a report is made: whoever has no memory left is killed. And so may who waits for the report."""

import subprocess
import sys
from pathlib import Path

import pytest

from mesh_tests.installed import require
from mesh_tests.link_logs import line
from mesh_tests.spark.conftest import LONG_S, STARTS_JAVA, java_version

pytestmark = STARTS_JAVA
KILLED = """
import logging
import linklogs.replay.run
from mesh.commands.cli import main

def run(spark, params):
    assert spark.range(1).mapInArrow(lambda batches: batches, "id long").count() == 1
    java = spark.sparkContext._gateway.proc
    java.kill()
    java.wait()
    logging.error("what whoever has no logger says")
    CALLED_THEN

linklogs.replay.run.run = run
main()
"""

INTERRUPTED = """
import os, signal, threading
import linklogs.replay.run
from mesh.commands.cli import main

def interrupt(context):
    while not context.statusTracker().getActiveJobsIds():
        pass
    os.kill(os.getpid(), signal.SIGINT)

def run(spark, params):
    threading.Thread(target=interrupt, args=(spark.sparkContext,)).start()
    return spark.range(10**15).where("id % 3 = 7").count()

linklogs.replay.run.run = run
main()
"""


CALLED_THEN = {"a question": "return spark.range(1).count()", "an answer that is cut short": "raise EOFError"}


@pytest.mark.parametrize("then", CALLED_THEN)
def test_a_report_whose_java_is_killed_ends_with_a_sentence(then: str, tmp_path: Path) -> None:
    done = _report(KILLED.replace("CALLED_THEN", CALLED_THEN[then]), tmp_path)
    assert "Traceback" not in done.stderr, done.stderr
    assert "error: Spark's Java process ended before the report was done" in done.stderr
    assert done.returncode == 1
    said = (tmp_path / "report" / "spark.log").read_text()
    assert "WARN" in said, "what Java said before is still there"
    assert "what whoever has no logger says" in said


def test_a_report_that_is_interrupted_ends_without_stack_traces(tmp_path: Path) -> None:
    done = _report(INTERRUPTED, tmp_path)
    assert "Traceback" not in done.stderr, done.stderr
    assert "interrupted" in done.stderr
    assert done.returncode == 130


def _report(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    line(folder / "logs", 1)
    arguments = ["report", str(folder / "logs"), "--out", str(folder / "report"), "--master", "local[1]"]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=LONG_S
    )
