"""Which way circuits went, what that cost, and what went over each connection between routers."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mesh_tests.link_logs import START_US, S, connection, delivery, link, node, write
from mesh_tests.spark.reports import PRODUCER, at, only, report, rows


def circuit_logs(root: Path, path: str, cheapest: str) -> None:
    costs = (("r1", "r2", 1), ("r1", "r3", 4), ("r2", "r3", 1))
    for name in ("r1", "r2"):
        edges = [at(0, "neighbor", event="opened", neighbor=b, cost=cost) for a, b, cost in costs if a == name]
        rest: list[Any] = []
        if name == "r1":
            facts = {"address": "a", "ingress": "r1", "egress": "r3", "path": path, "connection": 2}
            rest = [
                connection(2, "router", container=path.split(">")[1]),
                link(2, "circuit", "outgoing", **facts),
                at(0, "path", event="opened", egress="r3", path=cheapest, cost=2),
                *(delivery(second, 1, 2) for second in range(3)),
            ]
        write(root, name, [*PRODUCER, *edges, *rest])


@pytest.mark.parametrize(
    ("path", "cost", "is_detour"), [("r1>r3", 4, True), ("r1>r2>r3", 2, False), ("r1>r9>r3", None, True)]
)
def test_a_circuit_on_a_dearer_path_is_a_detour(
    spark: SparkSession, tmp_path: Path, path: str, cost: int | None, is_detour: bool
) -> None:
    circuit_logs(tmp_path, path, "r1>r2>r3")
    row = only(report(spark, tmp_path).by_name["circuits"])
    assert (row.path, row.cheapest, row.cost, row.cheapest_cost) == (path, "r1>r2>r3", cost, 2)
    assert (row.is_detour, row.messages) == (is_detour, 3)


@pytest.mark.parametrize(("cost", "is_detour"), [(1, True), (2, False)])
def test_cheapest_paths_may_be_handed_in_and_another_of_the_same_cost_is_no_detour(
    spark: SparkSession, tmp_path: Path, cost: int, is_detour: bool
) -> None:
    circuit_logs(tmp_path, "r1>r2>r3", "r1>r2>r3")
    cheapest = spark.createDataFrame(
        [("r1", "r3", "r1>r3", cost)], "node string, egress string, cheapest string, cheapest_cost long"
    )
    row = only(report(spark, tmp_path, cheapest=cheapest).by_name["circuits"])
    assert (row.cheapest, row.is_detour) == ("r1>r3", is_detour)


def test_a_circuit_is_told_once_though_each_router_on_its_way_has_a_link_of_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    facts = {"address": "a", "ingress": "r1", "egress": "r3", "path": "r1>r2>r3", "connection": 2}
    for name, way in (("r1", "outgoing"), ("r2", "outgoing"), ("r3", "incoming")):
        moved = (delivery(second, 1, 2) if way == "outgoing" else delivery(second, 2, 1) for second in range(3))
        told = [connection(2, "router"), link(2, "circuit", way, **facts), *moved]
        write(tmp_path, name, [*PRODUCER, *told])
    assert rows(report(spark, tmp_path).by_name["circuits"], "node", "messages") == {("r1", 3)}


def test_the_cheapest_path_of_a_circuit_is_the_last_that_there_was(spark: SparkSession, tmp_path: Path) -> None:
    circuit_logs(tmp_path, "r1>r3", "r1>r2>r3")
    over = at(9, "path", event="closed", egress="r3")
    write(tmp_path, "r1", [node(), over], name="1-1")
    row = only(report(spark, tmp_path).by_name["circuits"])
    assert (row.cheapest, row.cheapest_cost) == ("r1>r2>r3", 2)


def test_what_a_circuit_costs_and_what_was_cheapest_is_that_of_its_time(spark: SparkSession, tmp_path: Path) -> None:
    facts = {"address": "a", "egress": "r3", "connection": 2}
    told = [
        *(at(second, "neighbor", event=event, neighbor="r3", cost=cost)
          for second, event, cost in ((0, "opened", 1), (50, "live", 1), (60, "changed", 9), (90, "live", 9))),
        *(at(0, "neighbor", event="opened", neighbor="r2", cost=1),),
        *(at(second, "path", event=event, egress="r3", path=path, cost=cost)
          for second, event, path, cost in ((0, "opened", "r1>r3", 1), (60, "changed", "r1>r2>r3", 2))),
        link(2, "circuit", "outgoing", path="r1>r3", **facts),
        at(40, "link", event="closed", link=2),
        {**link(3, "circuit", "outgoing", path="r1>r3", **facts), "at_us": START_US + 45 * S},
        {**link(4, "circuit", "outgoing", path="r1>r2>r3", **facts), "at_us": START_US + 61 * S},
    ]  # fmt: skip
    beyond = [node(), at(0, "neighbor", event="opened", neighbor="r3", cost=1)]
    write(tmp_path, "r1", [*PRODUCER, *told, *(delivery(second, 1, 2) for second in (1, 100))])
    write(tmp_path, "r2", beyond)
    found = rows(report(spark, tmp_path).by_name["circuits"], "link", "cost", "cheapest", "cheapest_cost", "is_detour")
    assert found == {
        (2, 1, "r1>r3", 1, False),
        (3, 9, "r1>r2>r3", 2, True),
        (4, 2, "r1>r2>r3", 2, False),
    }


def test_an_edge_has_its_cost_and_what_went_that_way(spark: SparkSession, tmp_path: Path) -> None:
    circuit_logs(tmp_path, "r1>r2>r3", "r1>r2>r3")
    table = report(spark, tmp_path).by_name["edges"]
    assert rows(table, "node", "neighbor", "cost", "messages") == {
        ("r1", "r2", 1, 3),
        ("r1", "r3", 4, 0),
        ("r2", "r3", 1, 0),
    }


def test_an_edge_is_found_where_containers_of_links_are_redacted(spark: SparkSession, tmp_path: Path) -> None:
    circuit = link(2, "circuit", "outgoing", connection=2, container="8fb06d2ecdf84896", path="r1>r2")
    edge = at(0, "neighbor", event="opened", neighbor="r2", cost=1)
    write(tmp_path, "r1", [*PRODUCER, connection(2, "router", container="r2"), circuit, edge, delivery(1, 1, 2)])
    table = report(spark, tmp_path).by_name["edges"]
    assert rows(table, "node", "neighbor", "cost", "messages") == {("r1", "r2", 1, 1)}
