"""A report of what the nodes of a simulated mesh recorded, all in one process."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from mesh_tests.sim.ten_nodes import NODES, SENT, leave_link_logs
from mesh_tests.spark.reports import only, report, rows


def test_the_link_logs_of_ten_simulated_nodes_are_read_as_those_of_ten_processes(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = report(spark, leave_link_logs(tmp_path)).by_name
    assert rows(tables["runs"], "node", "restart", "ending") == {(name, 0, "stopped") for name in NODES}
    for address in ("rpc", "orders"):
        assert only(tables["addresses"], address=address, side="in", peer="client")["messages"] == SENT
