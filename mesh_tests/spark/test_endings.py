"""An orderly stop of a node, a crash, and a connection that was lost are told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from mesh_tests.link_logs import RUN, START_US, Row, S, connection, link, node, write
from mesh_tests.spark.reports import report, rows


def at(seconds: float, kind: str, run: int = RUN, **more: Any) -> Row:
    return {"kind": kind, "at_us": START_US + round(seconds * S), "run": run, **more}


def neighbor(seconds: float, event: str, other: str, run: int = RUN, **more: Any) -> Row:
    return at(seconds, "neighbor", run, event=event, neighbor=other, cost=1, **more)


def ended(seconds: float, cause: str, run: int = RUN) -> Row:
    return at(seconds, "node", run, event="closed", cause=cause)


def began(seconds: float, run: int) -> list[Row]:
    return [at(seconds, "node", run, event="live", role="router"), neighbor(seconds + 1, "opened", "r1", run)]


UP = [node(), neighbor(0, "opened", "r1")]
LOST = neighbor(20, "closed", "r1")
CASES: dict[str, tuple[list[Row], str | None]] = {
    "told as its last that it stops": ([*UP, LOST, ended(22, "stopped"), *began(25, 2)], "stopped"),
    "never came back": ([*UP, LOST, ended(22, "stopped")], "stopped"),
    "could not go on": ([*UP, LOST, ended(20.5, "failed"), *began(25, 2)], "failed"),
    "says nothing any more": (UP, "crashed"),
    "began again and says nothing of its end": ([*UP, *began(24, 2)], "crashed"),
    "began again before anybody noticed": ([*UP, *began(17, 2)], "crashed"),
    "lost the connection too": ([*UP, neighbor(20.2, "closed", "r1", cause="silent")], "connection"),
    "was stopped before": ([*UP, ended(3, "stopped"), *began(4, 2), neighbor(20, "closed", "r1", 2)], "connection"),
    "is stopped long after": ([*UP, LOST, ended(60, "stopped")], "connection"),
    "has no logs": ([], None),
    "lost records too": ([*UP, at(50, "node", event="lost", count=3)], "crashed"),
    "had its clock set": ([*UP, at(50, "node", event="changed", clock_us=1)], "crashed"),
}


def test_why_a_neighbor_was_lost_follows_from_its_own_records(spark: SparkSession, tmp_path: Path) -> None:
    seen = []
    for case, (told, _) in CASES.items():
        seen += [neighbor(0, "opened", case), neighbor(20, "closed", case, cause="closed")]
        seen.append(neighbor(30, "opened", case))
        if told:
            write(tmp_path, case, told)
    write(tmp_path, "r1", [node(), *seen])
    found = rows(report(spark, tmp_path).by_name["outages"].where("node = 'r1'"), "neighbor", "why")
    assert found == {(case, why) for case, (_, why) in CASES.items()}


def test_what_a_node_loses_as_it_ends_is_no_fault_of_its_neighbors(spark: SparkSession, tmp_path: Path) -> None:
    losses = [neighbor(second, "closed", f"r{second}") for second in (5, 20)]
    write(
        tmp_path,
        "r1",
        [node(), neighbor(0, "opened", "r5"), neighbor(0, "opened", "r20"), *losses, ended(22, "stopped")],
    )
    for other in (5, 20):
        write(tmp_path, f"r{other}", [node(), neighbor(0, "opened", "r1"), neighbor(other, "closed", "r1")])
    found = rows(report(spark, tmp_path).by_name["outages"].where("node = 'r1'"), "neighbor", "why")
    assert found == {("r5", "connection"), ("r20", "itself")}


def test_what_ends_soon_after_an_outage_that_was_over_is_not_why(spark: SparkSession, tmp_path: Path) -> None:
    outage = [neighbor(20, "closed", ""), neighbor(23, "opened", "")]
    seen = [{**row, "neighbor": other} for other in ("r2", "r3") for row in (neighbor(0, "opened", ""), *outage)]
    write(tmp_path, "r1", [node(), *seen, ended(26, "stopped")])
    again = [*began(22, 2), neighbor(26, "closed", "r1", 2), ended(26, "stopped", 2)]
    write(tmp_path, "r2", [node(), neighbor(0, "opened", "r1"), *again])
    told_too = [{**row, "neighbor": "r1"} for row in outage]
    write(tmp_path, "r3", [node(), neighbor(0, "opened", "r1"), *told_too, ended(26, "stopped")])
    found = rows(report(spark, tmp_path).by_name["outages"].where("node = 'r1'"), "neighbor", "why")
    assert found == {("r2", "crashed"), ("r3", "connection")}


def test_each_run_of_a_node_says_how_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    later = [at(10, "node", 2, event="opened", role="broker"), at(20, "node", 3, event="opened", role="broker")]
    write(tmp_path, "b1", [node("broker"), ended(9, "stopped"), *later])
    table = report(spark, tmp_path).by_name["runs"]
    assert rows(table, "run", "ending") == {(1, "stopped"), (2, "crashed"), (3, None)}


def test_a_client_of_a_broker_is_told_of_and_no_taker_of_the_mesh(spark: SparkSession, tmp_path: Path) -> None:
    of_router = link(2, "router", "outgoing", address="work", connection=2)
    starved = at(5, "credit", link=1, starved_us=2 * S, credit=0, cause="full_queue")
    write(
        tmp_path,
        "b1",
        [
            node("broker"),
            connection(1, "client", container="app"),
            connection(2, "router"),
            link(1, "producer", "incoming", address="work", treatment="queue"),
            link(3, "consumer", "outgoing", address="work", treatment="queue"),
            of_router,
            starved,
        ],
    )
    tables = report(spark, tmp_path).by_name
    assert rows(tables["links"], "link", "role") == {(1, "producer"), (2, "router"), (3, "consumer")}
    assert rows(tables["credit"], "link", "cause", "container", "starved_us") == {(1, "full_queue", "app", 2 * S)}
    assert tables["takers"].collect() == []
