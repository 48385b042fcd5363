"""Java may end while a report is made: whoever has no memory left is killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from mesh_tests.installed import require
from mesh_tests.link_logs import line
from mesh_tests.spark.conftest import java_version

KILLED = """
import linklogs.replay.run
from mesh.cli import main

def run(spark, params):
    java = spark.sparkContext._gateway.proc
    java.kill()
    java.wait()
    return spark.range(1).count()

linklogs.replay.run.run = run
main()
"""


@pytest.mark.timeout(120)
def test_a_report_whose_java_is_killed_ends_with_a_sentence(tmp_path: Path) -> None:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    line(tmp_path / "logs", 1)
    arguments = ["report", str(tmp_path / "logs"), "--out", str(tmp_path / "report"), "--master", "local[1]"]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments], capture_output=True, text=True, check=False, timeout=100
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "error: Spark's Java ended in the middle of it" in done.stderr
    assert done.returncode == 1
