"""Java may end while a report is made: whoever has no memory left is killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from mesh_tests.installed import require
from mesh_tests.link_logs import line
from mesh_tests.spark.conftest import java_version

KILLED = """
import logging
import linklogs.replay.run
from mesh.cli import main

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


CALLED_THEN = {"a question": "return spark.range(1).count()", "an answer that is cut short": "raise EOFError"}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("then", CALLED_THEN)
def test_a_report_whose_java_is_killed_ends_with_a_sentence(then: str, tmp_path: Path) -> None:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    line(tmp_path / "logs", 1)
    report = tmp_path / "report"
    arguments = ["report", str(tmp_path / "logs"), "--out", str(report), "--master", "local[1]"]
    done = subprocess.run(
        [sys.executable, "-c", KILLED.replace("CALLED_THEN", CALLED_THEN[then]), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "error: Spark's Java ended in the middle of it" in done.stderr
    assert done.returncode == 1
    said = (report / "spark.log").read_text()
    assert "WARN" in said, "what Java said before is still there"
    assert "what whoever has no logger says" in said
