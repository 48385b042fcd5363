"""Clocks that disagree, as links between nodes show it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mesh_tests.link_logs import START_US, Row, connection, delivery, link, node, write
from mesh_tests.spark.reports import only, report, rows

MS = 1000


def at_clock(row: Row, ahead_us: int) -> Row:
    return {**row, "at_us": int(row["at_us"] or 0) + ahead_us}


def three_nodes(root: Path, ahead_us: int) -> None:
    """r1, r2 and r3 are tied by circuits; r3's clock is ahead, and each end hears of a circuit 1 ms after the other."""
    for me, others in (("r1", ("r2", "r3")), ("r2", ("r1", "r3")), ("r3", ("r1", "r2"))):
        rows = [node(), connection(1, "client"), link(1, "producer", "incoming", address="a"), delivery(5, 1, 0)]
        for number, other in enumerate(others, 2):
            begun = link(number, "circuit", "outgoing", name=f"{me}>{other}", address="a")
            heard = link(number + 2, "circuit", "incoming", name=f"{other}>{me}", address="a")
            rows += [begun, {**heard, "at_us": START_US + MS}]
        write(root, me, [at_clock(row, ahead_us if me == "r3" else 0) for row in rows])


def test_a_clock_that_is_ahead_is_found_and_its_times_corrected(spark: SparkSession, tmp_path: Path) -> None:
    three_nodes(tmp_path, 60_000_000)
    tables = report(spark, tmp_path).by_name
    found = only(tables["clocks"])
    assert found.node == "r3"
    assert abs(found.ahead_us - 60_000_000) <= MS
    assert rows(tables["mesh_by_window"], "side", "messages") == {("in", 3)}


@pytest.mark.parametrize("ahead_us", [0, 45_000, -45_000])
def test_a_small_difference_is_left_alone(spark: SparkSession, tmp_path: Path, ahead_us: int) -> None:
    three_nodes(tmp_path, ahead_us)
    assert report(spark, tmp_path).by_name["clocks"].collect() == []
