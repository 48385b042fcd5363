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

FOR_TESTS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    # A JVM runs many of these tests: to compile code that is fast pays off, but not for expressions over a few rows.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give time to the first test of a worker: Java starts beside two others, and compiles what it runs."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(300))
