"""A report whose work is done by a real cluster says what one says that is made on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet
from pyspark.sql import SparkSession

from addressing.topology.loader import load_topology
from linklogs.job_archive import pack
from mesh.commands.cli import cli
from mesh.reports.cheapest_paths import cheapest_paths
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.installed import require
from mesh_tests.spark.cluster import DRIVER, HOME, Cluster
from mesh_tests.spark.conftest import STARTS_JAVA, java_version
from mesh_tests.spark.reports import report

pytestmark = STARTS_JAVA
DEMO = Path(__file__).resolve().parents[2] / "topologies" / "demo.yml"
CONF = [word for name, value in DRIVER.items() for word in ("--conf", f"{name}={value}")]
FROM = "2026-01-05T01:10"
FROM_US = 1_767_571_800_000_000
"""The same, in Zurich."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require(java_version() >= 17, "Java 17", "apt install default-jre-headless")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made-up") / "logs"
    arguments = ["linklogs", "generate", "-t", str(DEMO), "--out", str(folder), "--records", "5k", "--seed", "3"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def cheaper(tmp_path: Path) -> Path:
    """A topology in which the direct way from r2 to r3 is the cheapest, as it is not to the routers of the logs."""
    file = tmp_path / "cheaper.yml"
    file.write_text(DEMO.read_text().replace("{to: r3, cost: 4}", "r3"))
    return file


def run(cluster: Cluster, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **cluster.environment, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def amqpmesh(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(cluster, sys.executable, "-m", "mesh", *arguments)


def as_rows(table: pa.Table) -> Counter[str]:
    """In any order, which is nobody's promise."""
    return Counter(json.dumps(row, default=str, sort_keys=True) for row in table.to_pylist())


def differing(folder: Path, wanted: Mapping[str, Counter[str]]) -> list[str]:
    found = {path.stem: as_rows(parquet.read_table(path)) for path in (folder / "tables").glob("*.parquet")}
    assert found.keys() == wanted.keys()
    return [name for name, rows in wanted.items() if found[name] != rows]


def test_the_tables_of_a_cluster_are_those_of_this_machine(
    spark: SparkSession, cluster: Cluster, logs: Path, tmp_path: Path, cheaper: Path
) -> None:
    cheapest = spark.createDataFrame(cheapest_paths(load_topology(cheaper)))
    local = report(spark, logs, cheapest=cheapest).by_name
    wanted = {name: as_rows(table.toArrow()) for name, table in local.items()}
    launched = cluster.executors()
    out = tmp_path / "report"
    where = ("--master", cluster.url, *CONF, "--topology", str(cheaper))
    done = amqpmesh(cluster, "report", str(logs), "--out", str(out), "--json", *where)
    assert done.returncode == ExitCode.OK, done.stderr
    assert [now - before for before, now in zip(launched, cluster.executors(), strict=True)] == [1, 1]
    assert differing(out, wanted) == []
    assert sum(row["messages"] for row in json.loads(done.stdout)["totals"]) > 1000
    assert any('"cheapest": "r2>r3"' in row for row in wanted["circuits"])


def test_spark_submit_writes_the_tables_of_a_time_and_a_page_is_made_of_them_without_spark(
    spark: SparkSession, cluster: Cluster, logs: Path, tmp_path: Path
) -> None:
    part = report(spark, logs, from_us=FROM_US, address="o*").by_name
    wanted = {name: as_rows(table.toArrow()) for name, table in part.items()}
    packed = pack(tmp_path / "job")
    submit = (str(HOME / "bin" / "spark-submit"), "--master", cluster.url, *CONF, "--py-files", str(packed.archive))
    asked = ("--from", FROM, "--tz", "Europe/Zurich", "--address", "o*")
    done = run(cluster, *submit, str(packed.job), str(logs), str(tmp_path / "tables"), *asked)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "report"
    shown = CliRunner().invoke(cli, ["report", "--tables", str(tmp_path / "tables"), "--out", str(out), "--json"])
    assert shown.exit_code == ExitCode.OK, shown.output
    assert differing(out, wanted) == []
    told = json.loads(shown.stdout)
    assert (told["address"], told["records"]) == ("o*", json.loads((out / "summary.json").read_text())["records"])
    assert "<title>amqpmesh report: 2026-01-05 00:10" in (out / "report.html").read_text()
