"""One Spark session for all tests of this directory that a worker runs: a JVM takes seconds to start."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from linklogs.session import open_session
from mesh_tests.installed import require

LONG_S = 900.0
STARTS_JAVA = pytest.mark.xdist_group("tests that start Java")
FOR_TESTS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    # To compile what is fast takes a third of a JVM's time, and pays off after more tests than there are.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def java_version() -> int:
    """The major one; 0 without Java."""
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if java is None:
        return 0
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    session = open_session("local[1]", FOR_TESTS)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def empty_cache(spark: SparkSession) -> Iterator[None]:
    """Spark takes files for those that it has kept if paths and sizes are the same, and tests share their paths.

    All tests here have the session: a command that makes one first would let Spark choose the Python of its workers.
    """
    yield
    spark.catalog.clearCache()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let two workers do these tests, and give each test the time that Java needs on a slow day.

    Two cores serve two JVMs that compile what they run, and no third one. So one worker has all tests that need the
    session only, and another one those that start Java themselves, which say so by their marker.
    """
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark"))
        item.add_marker(pytest.mark.timeout(LONG_S))
