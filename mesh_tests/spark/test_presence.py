"""What was gone before the time of a report, or came after it, is in none of its tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from linklogs.replay.run import Tables
from mesh_tests.link_logs import RUN, START_US, Row, S, connection, delivery, link, node, write
from mesh_tests.spark.reports import only, report, rows

FROM_S, TO_S = 100, 200
AGAIN = 2
CIRCUIT = {"ingress": "r1", "egress": "r2", "path": "r1>r2"}


def at(row: Row, seconds: float, run: int = RUN) -> Row:
    return {**row, "at_us": START_US + round(seconds * S), "run": run}


def closed(row: Row, seconds: float) -> Row:
    return at({**row, "event": "closed", "cause": "detached"}, seconds)


def taker(number: int, seconds: float = 0, run: int = RUN) -> Row:
    return at(link(number, "consumer", "outgoing", address="a", treatment="balanced"), seconds, run)


def of_time(spark: SparkSession, root: Path) -> Tables:
    return report(spark, root, from_us=START_US + FROM_S * S, to_us=START_US + TO_S * S)


def test_links_and_takers_are_those_that_were_there(spark: SparkSession, tmp_path: Path) -> None:
    gone, going, late = taker(1), taker(2), taker(4, TO_S)
    write(
        tmp_path,
        "r1",
        [
            node(),
            connection(1, "client"),
            *(gone, closed(gone, 50), going, closed(going, 150), taker(3), late),
            *(delivery(150, 0, number) for number in (2, 3)),
        ],
    )
    tables = of_time(spark, tmp_path).by_name
    assert rows(tables["links"], "link") == {(2,), (3,)}
    assert rows(tables["takers"], "link", "takers", "share") == {(2, 2, 0.5), (3, 2, 0.5)}


def test_a_link_that_was_gone_counts_where_something_of_it_was_settled_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    gone = taker(1)
    write(tmp_path, "r1", [node(), connection(1, "client"), gone, closed(gone, 50), delivery(150, 0, 1)])
    tables = of_time(spark, tmp_path).by_name
    for name in ("links", "takers"):
        assert rows(tables[name], "link", "address", "messages") == {(1, "a", 1)}, name


@pytest.mark.parametrize(("again_s", "links"), [(50, {(AGAIN, 1)}), (150, {(RUN, 1), (AGAIN, 1)})])
def test_what_a_crashed_node_had_is_gone_when_it_is_there_again(
    spark: SparkSession, tmp_path: Path, again_s: float, links: set[tuple[int, int]]
) -> None:
    again = [at(node(), again_s, AGAIN), at(connection(1, "client"), again_s, AGAIN), taker(1, again_s, AGAIN)]
    moved = delivery(160, 0, 1, run=AGAIN)
    write(tmp_path, "r1", [node(), connection(1, "client"), taker(1), *again, moved])
    tables = of_time(spark, tmp_path).by_name
    assert rows(tables["links"], "run", "link") == links
    assert rows(tables["connections"], "run", "connection") == links
    assert rows(tables["takers"], "run", "link") == links


@pytest.mark.parametrize("cause", ["stopped", "failed"])
def test_what_a_node_had_that_told_of_its_end_is_gone_with_it(spark: SparkSession, tmp_path: Path, cause: str) -> None:
    """Though it is there again only when the time of the report has begun."""
    write(tmp_path, "b1", [at(node("broker"), 150, AGAIN)], name="2-0")
    end = at({"kind": "node", "event": "closed", "cause": cause}, 50)
    queue = at({"kind": "queue", "event": "opened", "queue": 7, "address": "a"}, 0)
    depth = at({**queue, "event": "changed", "depth_count": 3, "depth_bytes": 3, "oldest_us": 0}, 1)
    write(tmp_path, "b1", [node("broker"), connection(1, "client"), taker(1), queue, depth, end])
    write(tmp_path, "r1", [node(), connection(1, "client"), taker(1), delivery(150, 0, 1)])
    tables = of_time(spark, tmp_path).by_name
    for name in ("links", "connections"):
        assert rows(tables[name], "node") == {("r1",)}, name
    assert tables["queues"].count() == 0


def test_connections_and_peers_are_those_of_the_time(spark: SparkSession, tmp_path: Path) -> None:
    each = [connection(number, "client", container="app") for number in (1, 2, 3)]
    write(tmp_path, "r1", [node(), *each, closed(each[0], 50), closed(each[1], 150), closed(each[2], 250)])
    tables = of_time(spark, tmp_path).by_name
    assert rows(tables["connections"], "connection") == {(2,), (3,)}
    assert rows(tables["peers"], "connections", "closed") == {(2, 1)}


def test_circuits_and_queues_are_those_of_the_time(spark: SparkSession, tmp_path: Path) -> None:
    told: list[Row] = []
    for number, ends_s in ((1, 50), (2, 150)):
        circuit = link(number, "circuit", "outgoing", address="a", **CIRCUIT)
        queue = at({"kind": "queue", "event": "opened", "queue": number, "address": "a"}, 0)
        depth = {"event": "changed", "depth_count": number, "depth_bytes": 0, "oldest_us": 0}
        told += [circuit, closed(circuit, ends_s), queue, at({**queue, **depth}, 1), closed(queue, ends_s)]
    write(tmp_path, "r1", [node(), connection(1, "router", container="r2"), *told, delivery(150, 0, 2)])
    tables = of_time(spark, tmp_path).by_name
    assert only(tables["circuits"]).link == 2
    assert (only(tables["queues"]).queue, only(tables["queues"]).last_messages) == (2, 2)
