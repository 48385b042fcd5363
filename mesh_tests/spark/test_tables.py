"""Each of the other tables, of a mesh small enough to know what must be in it."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from linklogs.replay import planned
from linklogs.writing import ordered
from mesh_tests.link_logs import RUN, START_US, S, connection, delivery, link, node, write
from mesh_tests.spark.reports import only, report, rows


def at(seconds: float, kind: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "at_us": START_US + round(seconds * S), "run": RUN, **more}


ROOT = Path(__file__).parents[2]
PRODUCER = [node(), connection(1, "client"), link(1, "producer", "incoming", address="a")]


def test_starved_time_adds_up_by_link_and_cause(spark: SparkSession, tmp_path: Path) -> None:
    credit = [
        at(5, "credit", link=1, starved_us=2 * S, cause="takers"),
        at(15, "credit", link=1, starved_us=3 * S, cause="takers"),
        at(16, "credit", link=1, starved_us=S, cause="no_taker"),
        at(17, "credit", link=1, starved_us=0, credit=10),
    ]
    write(tmp_path, "r1", [*PRODUCER, *credit, delivery(0, 1, 0), delivery(19, 1, 0)])
    tables = report(spark, tmp_path).by_name
    assert rows(tables["credit"], "address", "cause", "starved_us", "longest_us", "times", "share") == {
        ("a", "takers", 5 * S, 3 * S, 2, 0.25),
        ("a", "no_taker", S, S, 1, 0.05),
    }
    by_window = {(row.window.second, row.cause, row.starved_us) for row in tables["credit_by_window"].collect()}
    assert by_window == {(0, "takers", 2 * S), (10, "takers", 3 * S), (10, "no_taker", S)}


def test_a_wait_that_is_told_of_each_second_is_one(spark: SparkSession, tmp_path: Path) -> None:
    waits = [at(second, "credit", link=1, starved_us=S, cause="takers") for second in (3, 4, 5, 9)]
    begun = at(6, "credit", link=2, starved_us=700_000, cause="takers")
    write(tmp_path, "r1", [*PRODUCER, link(2, "producer", "incoming", address="b"), *waits, begun])
    credit = report(spark, tmp_path).by_name["credit"]
    found = rows(credit, "address", "starved_us", "longest_us", "times")
    assert found == {("a", 4 * S, 3 * S, 2), ("b", 700_000, 700_000, 1)}
    began = {row.address: row.since_at.second + row.since_at.microsecond / S for row in credit.collect()}
    assert began == {"a": 2, "b": 5.3}


def test_a_queue_has_its_depth_its_age_and_what_went_through_it(spark: SparkSession, tmp_path: Path) -> None:
    write(
        tmp_path,
        "b1",
        [
            node("broker"),
            at(0, "queue", event="opened", queue=7, address="work"),
            at(3, "queue", event="changed", queue=7, depth_count=5, depth_bytes=500, oldest_us=2 * S, acquired_count=4),
            at(
                12, "queue", event="changed", queue=7, depth_count=2, depth_bytes=200, oldest_us=9 * S, acquired_count=1
            ),
            at(2, "message", event="enqueued", queue=7, count=6, size_bytes=600, took_us=0),
            at(11, "message", event="dequeued", queue=7, count=3, size_bytes=300, took_us=8 * S),
            at(12, "message", event="expired", queue=7, count=1, size_bytes=100, took_us=10 * S),
            at(12, "message", event="removed", queue=7, count=2, size_bytes=200, took_us=10 * S),
        ],
    )
    tables = report(spark, tmp_path).by_name
    row = only(tables["queues"])
    assert (row.address, row.most_messages, row.last_messages, row.oldest_us) == ("work", 5, 2, 9 * S)
    assert (row.most_acquired, row.last_acquired) == (4, 1)
    assert (row.enqueued, row.dequeued, row.expired, row.dead_lettered, row.removed) == (6, 3, 1, 0, 2)
    assert row.longest_wait_us == 8 * S
    over_time = {(row.window.second, row.most_messages, row.dequeued) for row in tables["queues_by_window"].collect()}
    assert over_time == {(0, 5, 0), (10, 2, 3)}


def test_takers_of_an_address_have_shares_of_it(spark: SparkSession, tmp_path: Path) -> None:
    consumers = [link(number, "consumer", "outgoing", address="a", treatment="balanced") for number in (2, 3, 4)]
    copied = link(5, "consumer", "outgoing", address="news", treatment="multicast")
    moved = [*(delivery(1, 1, 2) for _ in range(6)), *(delivery(2, 1, 3) for _ in range(2))]
    write(tmp_path, "r1", [*PRODUCER, *consumers, copied, *moved])
    found = rows(report(spark, tmp_path).by_name["takers"], "link", "messages", "takers", "share", "times_even")
    assert found == {(2, 6, 3, 0.75, 2.25), (3, 2, 3, 0.25, 0.75), (4, 0, 3, 0.0, 0.0)}


def test_who_was_there_for_less_time_has_an_even_share_of_less(spark: SparkSession, tmp_path: Path) -> None:
    """One after the other: each got all there was in its time."""
    early, late = link(2, "consumer", "outgoing", address="a"), link(3, "consumer", "outgoing", address="a")
    gone = at(30, "link", event="closed", link=2, connection=1)
    moved = [delivery(second, 1, 2 if second < 30 else 3) for second in range(0, 40, 2)]
    write(tmp_path, "r1", [*PRODUCER, early, gone, {**late, "at_us": START_US + 30 * S}, *moved])
    found = rows(report(spark, tmp_path).by_name["takers"], "link", "messages", "there_s", "share", "times_even")
    assert found == {(2, 15, 30.0, 0.75, 1.0), (3, 5, 10.0, 0.25, 1.0)}


def test_brokers_and_consumers_of_a_queue_have_shares_apart(spark: SparkSession, tmp_path: Path) -> None:
    facts = {"address": "work", "treatment": "queue"}
    takers = [link(2, "broker", "outgoing", **facts), *(link(n, "consumer", "outgoing", **facts) for n in (3, 4))]
    moved = [*(delivery(1, 1, 2) for _ in range(8)), *(delivery(2, 9, 3) for _ in range(3)), delivery(3, 9, 4)]
    write(tmp_path, "r1", [*PRODUCER, *takers, *moved])
    found = rows(report(spark, tmp_path).by_name["takers"], "link", "takers", "share", "times_even")
    assert found == {(2, 1, 1.0, 1.0), (3, 2, 0.75, 1.5), (4, 2, 0.25, 0.5)}


def test_a_broker_is_one_taker_of_a_queue_however_many_links_lead_to_it(spark: SparkSession, tmp_path: Path) -> None:
    brokers = [connection(number, "broker", container=f"b{number % 2}") for number in (2, 3, 4)]
    facts = {"address": "work", "treatment": "queue"}
    takers = [link(number, "broker", "outgoing", connection=number, **facts) for number in (2, 3, 4)]
    moved = [delivery(1, 1, number) for number in (2, 2, 3, 4)]
    write(tmp_path, "r1", [*PRODUCER, *brokers, *takers, *moved])
    found = rows(report(spark, tmp_path).by_name["takers"], "container", "node", "link", "messages", "takers", "share")
    assert found == {("b0", "r1", None, 3, 2, 0.75), ("b1", "r1", 3, 1, 2, 0.25)}


def test_an_outage_lasts_until_the_neighbor_is_back_and_counts_what_failed_meanwhile(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(
        tmp_path,
        "r1",
        [
            *PRODUCER,
            at(0, "neighbor", event="opened", neighbor="r2", cost=1),
            at(12, "neighbor", event="closed", neighbor="r2", cause="silent"),
            at(15.5, "neighbor", event="opened", neighbor="r2", cost=1),
            at(40, "neighbor", event="closed", neighbor="r3", cause="refused"),
            delivery(5, 1, 0, outcome="released"),
            delivery(13, 1, 0, outcome="released"),
            delivery(14, 1, 0, outcome="modified"),
            delivery(14, 1, 0),
            delivery(25, 1, 0, outcome="released"),
        ],
    )
    write(tmp_path, "r9", [*PRODUCER, delivery(13, 1, 0, outcome="released")])
    found = rows(report(spark, tmp_path).by_name["outages"], "node", "neighbor", "cause", "lasted_s", "failed")
    assert found == {("r1", "r2", "silent", 3.5, 2), ("r1", "r3", "refused", None, 0)}


def test_what_happened_is_told_in_the_order_of_its_times(spark: SparkSession, tmp_path: Path) -> None:
    for name, other, seconds in (("r1", "r2", (0, 9)), ("r2", "r1", (3, 6))):
        told = [at(second, "neighbor", event="opened", neighbor=other, cost=second) for second in seconds]
        write(tmp_path, name, [node(), *told])
    table = ordered(report(spark, tmp_path).by_name["link_state"].toArrow())
    assert table["cost"].to_pylist() == [0, 3, 6, 9]
    assert table["at"].to_pylist() == sorted(table["at"].to_pylist())


def test_link_state_history_has_changes_and_no_repetitions(spark: SparkSession, tmp_path: Path) -> None:
    write(
        tmp_path,
        "r1",
        [
            node(),
            at(0, "neighbor", event="opened", neighbor="r2", cost=1),
            at(1, "neighbor", event="live", neighbor="r2", cost=1),
            at(2, "neighbor", event="changed", neighbor="r2", cost=5),
            at(3, "neighbor", event="live", neighbor="r2", cost=5),
            at(4, "neighbor", event="closed", neighbor="r2", cause="silent"),
        ],
    )
    table = report(spark, tmp_path).by_name["link_state"]
    assert rows(table, "event", "cost") == {("opened", 1), ("changed", 5), ("closed", None)}


def half_the_time(root: Path) -> list[Any]:
    """r2 was there for 200 s, and took one message in each second."""
    consumer = link(2, "consumer", "outgoing", address="a", treatment="balanced")
    write(root, "r2", [*PRODUCER, consumer, *(delivery(second, 1, 2) for second in range(200))])
    return [*PRODUCER, consumer, *(delivery(second, 1, 2) for second in range(50))]


def test_a_taker_was_there_until_its_node_was_stopped(spark: SparkSession, tmp_path: Path) -> None:
    told = half_the_time(tmp_path)
    write(tmp_path, "r1", [*told, at(50, "node", event="closed", cause="stopped")])
    found = report(spark, tmp_path).by_name["takers"]
    assert rows(found, "node", "there_s", "share", "times_even") == {("r1", 50, 0.2, 1.0), ("r2", 200, 0.8, 1.0)}


def test_a_taker_was_there_until_its_node_that_crashed_was_there_again(spark: SparkSession, tmp_path: Path) -> None:
    told = half_the_time(tmp_path)
    again = [{**row, "run": 2, "at_us": row["at_us"] + 50 * S} for row in told if row["kind"] != "delivery"]
    moved = [delivery(second, 1, 2, run=2) for second in range(50, 200)]
    write(tmp_path, "r1", told)
    write(tmp_path, "r1", [*again, *moved], name="2-0")
    found = report(spark, tmp_path).by_name["takers"]
    assert rows(found, "node", "run", "there_s", "times_even") == {
        ("r1", 1, 50, 1.0), ("r1", 2, 150, 1.0), ("r2", 1, 200, 1.0),
    }  # fmt: skip


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


def test_runs_of_a_node_are_its_restarts(spark: SparkSession, tmp_path: Path) -> None:
    again = {"kind": "node", "event": "opened", "at_us": START_US + 9 * S, "run": 2, "role": "router", "version": "2"}
    write(tmp_path, "r1", [node(version="1"), again])
    table = report(spark, tmp_path).by_name["runs"]
    assert rows(table, "node", "run", "restart", "version") == {("r1", 1, 0, "1"), ("r1", 2, 1, "2")}


def test_records_that_were_lost_are_a_share_of_all(spark: SparkSession, tmp_path: Path) -> None:
    lost = [at(1, "node", event="lost", count=4), at(2, "node", event="lost", count=1)]
    write(tmp_path, "r1", [*PRODUCER, *lost, *(delivery(1, 1, 0) for _ in range(10))])
    row = only(report(spark, tmp_path).by_name["missing"])
    assert (row.lost, row.moved, row.told, row.share) == (5, 10, 5, 0.25)


def test_records_of_many_deliveries_are_as_many_as_those_that_were_lost(spark: SparkSession, tmp_path: Path) -> None:
    traffic = [{**delivery(second, 1, 0), "kind": "traffic", "count": 1000} for second in range(3)]
    write(tmp_path, "r1", [*PRODUCER, at(1, "node", event="lost", count=2), *traffic])
    row = only(report(spark, tmp_path).by_name["missing"])
    assert (row.lost, row.moved, row.told, row.share) == (2, 3, 4, 2 / 9)


def test_records_of_runs_that_no_file_tells_of_are_missing_too(spark: SparkSession, tmp_path: Path) -> None:
    write(
        tmp_path, "r1", [*PRODUCER, *(delivery(1, 1, 0) for _ in range(7)), *(delivery(1, 1, 0, run=9) for _ in "10")]
    )
    table = report(spark, tmp_path).by_name["missing"]
    assert rows(table, "node", "run", "lost", "moved", "told", "untold", "share") == {
        ("r1", RUN, 0, 7, 3, 0, 0.0),
        ("r1", None, 0, 0, 0, 2, 1.0),
    }


def test_drains_are_told_by_link(spark: SparkSession, tmp_path: Path) -> None:
    consumer = link(2, "consumer", "outgoing", address="a", user="bob")
    drains = [at(second, "credit", event="drain", link=2, count=2, credit=10) for second in (3, 9)]
    write(tmp_path, "r1", [*PRODUCER, consumer, *drains, at(9, "credit", link=1, starved_us=S, cause="takers")])
    drained = report(spark, tmp_path).by_name["drains"]
    assert rows(drained, "link", "address", "user", "times") == {(2, "a", "bob", 4)}
    assert [(row.first_at.second, row.last_at.second) for row in drained.collect()] == [(3, 9)]


def kept(second: float, count: int, number: int = 2, event: str = "changed") -> dict[str, Any]:
    return at(second, "credit", event=event, link=number, credit=5, unsettled_count=count)


def test_deliveries_that_a_receiver_kept_have_how_many_and_for_how_long(spark: SparkSession, tmp_path: Path) -> None:
    consumers = [link(number, "consumer", "outgoing", address="a", user="bob") for number in (2, 3, 4)]
    told = [
        *(kept(*each) for each in ((1, 0), (12, 3), (20, 5), (30, 0), (50, 2))),
        kept(25, 5, event="live"),
        kept(40, 1, 3, event="live"),
        at(45, "link", event="closed", link=3),
        kept(1, 0, 4),
    ]
    write(tmp_path, "r1", [*PRODUCER, *consumers, *told, delivery(59, 1, 0)])
    names = ("link", "user", "most_unsettled", "last_unsettled", "held_us", "longest_us", "times")
    whole = report(spark, tmp_path).by_name["unsettled"]
    # Told when it had lasted for 10 s. What a file opens with has no beginning; after 50 s nothing was told.
    assert rows(whole, *names) == {(2, "bob", 5, 2, 38 * S, 28 * S, 2), (3, "bob", 1, 1, 5 * S, 5 * S, 1)}
    assert {row.link: row.since_at.second for row in whole.collect()} == {2: 2, 3: 40}
    part = report(spark, tmp_path, from_us=START_US + 15 * S, to_us=START_US + 28 * S).by_name["unsettled"]
    assert rows(part, *names) == {(2, "bob", 5, 5, 13 * S, 13 * S, 1)}


HOLDER = [node(), connection(1, "client"), link(2, "consumer", "outgoing", address="a", user="bob")]


def opens(second: float, count: int) -> list[Any]:
    """What a file opens with."""
    return [
        *({**row, "event": "live", "at_us": START_US + round(second * S)} for row in HOLDER),
        kept(second, count, event="live"),
    ]


def held(spark: SparkSession, root: Path) -> set[tuple[Any, ...]]:
    return rows(report(spark, root).by_name["unsettled"], "most_unsettled", "last_unsettled", "held_us", "longest_us")


def test_what_each_file_opens_with_tells_for_how_long_something_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    """The files of when it began are gone."""
    for minute in range(30):
        write(tmp_path, "r1", opens(60 * minute, 5), name=f"1-{minute:02}")
    assert held(spark, tmp_path) == {(5, 5, 29 * 60 * S, 29 * 60 * S)}


def test_what_a_file_opens_with_was_so_before_its_first_record_of_the_same_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, "r1", [*HOLDER, kept(1, 0)], name="1-00")
    write(tmp_path, "r1", [*opens(65, 0), kept(65, 5)], name="1-01")
    for minute in range(2, 12):
        write(tmp_path, "r1", opens(60 * minute + 5, 5), name=f"1-{minute:02}")
    assert held(spark, tmp_path) == {(5, 5, 610 * S, 610 * S)}


def test_what_is_kept_at_last_is_kept_until_its_node_tells_no_more(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "r1", [*HOLDER, kept(20, 3), at(50, "node", event="closed", cause="stopped")])
    write(tmp_path, "r2", [node(), at(500, "neighbor", event="opened", neighbor="r1", cost=1)])
    assert held(spark, tmp_path) == {(3, 3, 30 * S, 30 * S)}


def test_drops_are_told_by_link_and_cause(spark: SparkSession, tmp_path: Path) -> None:
    dropped = [at(1, "drop", link=1, count=4, cause="full"), at(2, "drop", link=1, count=1, cause="full")]
    write(tmp_path, "r1", [*PRODUCER, *dropped])
    assert rows(report(spark, tmp_path).by_name["drops"], "address", "cause", "messages") == {("a", "full", 5)}


def test_noteworthy_deliveries_say_where_they_came_from(spark: SparkSession, tmp_path: Path) -> None:
    odd = [
        delivery(1, 1, 2, outcome=outcome) for outcome in ("rejected", "rejected", "aborted", "released", "accepted")
    ]
    write(tmp_path, "r1", [*PRODUCER, *odd])
    table = report(spark, tmp_path).by_name["noteworthy"]
    assert rows(table, "address", "outgoing", "outcome", "messages") == {
        ("a", 2, "rejected", 2),
        ("a", 2, "aborted", 1),
    }


def test_of_noteworthy_deliveries_the_latest_are_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned, "MOST_NOTEWORTHY", 2)
    odd = [delivery(second, 1, 2, outcome="rejected") for second in (1, 11, 11, 21)]
    write(tmp_path, "r1", [*PRODUCER, *odd])
    table = report(spark, tmp_path).by_name["noteworthy"]
    assert {(row.window.second, row.messages) for row in table.collect()} == {(10, 2), (20, 1)}


@pytest.mark.parametrize("port", ["", "4f1c88a01b2e390"])
def test_talkers_are_clients_by_host_whatever_their_port(spark: SparkSession, tmp_path: Path, port: str) -> None:
    clients = [
        connection(number, "client", container=f"c{number // 3}", user="u", remote_address=f"10.0.0.1:{port}{number}")
        for number in (1, 2, 3)
    ]
    links = [link(number, "producer", "incoming", address="a", connection=number) for number in (1, 2, 3)]
    moved = [delivery(1, number, 0) for number in (1, 1, 2, 3)]
    write(tmp_path, "r1", [node(), *clients, *links, *moved])
    table = report(spark, tmp_path).by_name["talkers"]
    assert rows(table, "container", "host", "messages", "share", "rank") == {
        ("c0", "10.0.0.1", 3, 0.75, 1),
        ("c1", "10.0.0.1", 1, 0.25, 2),
    }


def test_peers_are_counted_by_container(spark: SparkSession, tmp_path: Path) -> None:
    closed = at(3, "connection", event="closed", connection=1, cause="reset")
    write(
        tmp_path,
        "r1",
        [node(), connection(1, "router", container="r2"), closed, connection(2, "router", container="r2")],
    )
    table = report(spark, tmp_path).by_name["peers"]
    assert rows(table, "container", "connections", "closed", "last_cause") == {("r2", 2, 1, "reset")}


def test_a_link_on_which_nothing_moved_is_told_with_its_facts(spark: SparkSession, tmp_path: Path) -> None:
    gone = at(4, "link", event="closed", link=1, cause="detached")
    write(tmp_path, "r1", [*PRODUCER, gone])
    row = only(report(spark, tmp_path).by_name["links"])
    assert (row.address, row.messages, row.cause, row.closed_at.second) == ("a", None, "detached", 4)


def test_files_without_a_column_are_read_with_those_that_have_it(spark: SparkSession, tmp_path: Path) -> None:
    from pyarrow import parquet

    path = write(tmp_path, "r1", [*PRODUCER, delivery(1, 1, 0)])
    write(tmp_path, "r1", [delivery(2, 1, 0, outcome="released")], name="2-0")
    old = parquet.read_table(path).drop_columns(["version", "topology", "user"])
    parquet.write_table(old, path)
    row = only(report(spark, tmp_path).by_name["links"])
    assert (row.user, row.accepted, row.released) == (None, 1, 1)


def test_what_was_told_before_and_after_the_time_of_a_report_is_not_in_its_sums(
    spark: SparkSession, tmp_path: Path
) -> None:
    told = [
        row
        for second in (5, 105, 205)
        for row in (
            at(second, "credit", link=1, starved_us=2 * S, cause="takers"),
            at(second, "drop", link=1, count=2, cause="stalled"),
            at(second, "node", event="lost", count=10),
            at(second, "neighbor", event="closed", neighbor=f"r{second}", cause="silent"),
            at(second + 1, "neighbor", event="opened", neighbor=f"r{second}", cost=1),
            at(second, "queue", event="changed", queue=7, depth_count=second, depth_bytes=0, oldest_us=0),
        )
    ]
    queue = at(0, "queue", event="opened", queue=7, address="a")
    write(tmp_path, "r1", [*PRODUCER, queue, *told, *(delivery(second, 1, 0) for second in (5, 100, 105, 205))])
    tables = report(spark, tmp_path, from_us=START_US + 100 * S, to_us=START_US + 110 * S).by_name
    assert rows(tables["credit"], "starved_us", "times", "share") == {(2 * S, 1, 0.2)}
    assert [row.starved_us for row in tables["credit_by_window"].collect()] == [2 * S]
    assert rows(tables["drops"], "messages") == {(2,)}
    assert rows(tables["missing"], "lost", "moved", "told") == {(10, 2, 6)}
    assert rows(tables["outages"], "neighbor") == {("r105",)}
    assert rows(tables["link_state"], "neighbor", "event") == {("r105", "closed"), ("r105", "opened")}
    assert rows(tables["queues"], "most_messages", "last_messages") == {(105, 105)}
    assert rows(tables["queues_by_window"], "last_messages") == {(105,)}


def test_what_nobody_touches_gets_older(spark: SparkSession, tmp_path: Path) -> None:
    """A broker tells of a change only; the file after it opens with what is so then."""
    for queue, (count, oldest_us) in {7: (100, S), 8: (0, None)}.items():
        opened = at(0, "queue", event="opened", queue=queue, address=f"a{queue}")
        state = {"queue": queue, "depth_count": count, "depth_bytes": count, "oldest_us": oldest_us}
        write(tmp_path, "b1", [node("broker"), opened, at(3, "queue", event="changed", **state)], name=f"1-{queue}")
        later = state | {"oldest_us": oldest_us and oldest_us + 57 * S}
        live = [node("broker", at_us=START_US + 60 * S), at(60, "queue", event="live", **later)]
        write(tmp_path, "b1", live, name=f"2-{queue}")
    write(tmp_path, "b1", [at(90, "node", event="closed", cause="stopped")], name="3-0")
    write(tmp_path, "b1", [at(900, "node", event="lost", count=1)], name="4-0")
    found = rows(report(spark, tmp_path).by_name["queues"], "address", "oldest_us", "last_oldest_us")
    assert found == {("a7", 88 * S, 88 * S), ("a8", None, None)}
    until = report(spark, tmp_path, to_us=START_US + 70 * S).by_name["queues"]
    assert rows(until, "address", "last_oldest_us") == {("a7", 58 * S), ("a8", None)}


def test_what_lies_in_a_queue_gets_older_until_that_is_deleted(spark: SparkSession, tmp_path: Path) -> None:
    state = {"depth_count": 2, "depth_bytes": 2, "oldest_us": S}
    queue = [
        at(0, "queue", event="opened", queue=7, address="a"),
        at(3, "queue", event="changed", queue=7, **state),
        at(5, "queue", event="closed", queue=7),
    ]
    write(tmp_path, "b1", [node("broker"), *queue, at(3600, "node", event="closed", cause="stopped")])
    assert rows(report(spark, tmp_path).by_name["queues"], "oldest_us", "last_oldest_us") == {(3 * S, 3 * S)}


def test_files_that_open_with_the_age_that_was_told_before_them_are_understood(
    spark: SparkSession, tmp_path: Path
) -> None:
    """So the first version wrote them."""
    state = {"queue": 7, "depth_count": 2, "depth_bytes": 2, "oldest_us": S}
    opened = at(0, "queue", event="opened", queue=7, address="a")
    write(tmp_path, "b1", [node("broker"), opened, at(3, "queue", event="changed", **state)], name="1-0")
    write(tmp_path, "b1", [node("broker"), at(3000, "queue", event="live", **state)], name="2-0")
    write(tmp_path, "b1", [at(3060, "node", event="closed", cause="stopped")], name="3-0")
    found = report(spark, tmp_path).by_name["queues"]
    assert rows(found, "oldest_us", "last_oldest_us") == {(3058 * S, 3058 * S)}


def test_what_lay_in_a_queue_when_the_time_of_a_report_began_counts_and_what_lay_in_it_before_does_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    depths = {0: 500, 20: 100, 130: 40}
    told = [
        at(second, "queue", event="changed", queue=7, depth_count=count, depth_bytes=count, oldest_us=0)
        for second, count in depths.items()
    ]
    write(tmp_path, "b1", [node("broker"), at(0, "queue", event="opened", queue=7, address="a"), *told])
    tables = report(spark, tmp_path, from_us=START_US + 100 * S).by_name
    assert rows(tables["queues"], "most_messages", "most_bytes", "last_messages") == {(100, 100, 40)}


@pytest.mark.parametrize(("from_s", "count"), [(3, 1), (4, 0)])
def test_an_outage_that_was_not_over_when_the_time_of_a_report_began_is_in_it(
    spark: SparkSession, tmp_path: Path, from_s: int, count: int
) -> None:
    outage = [
        at(2, "neighbor", event="closed", neighbor="r2", cause="silent"),
        at(4, "neighbor", event="opened", neighbor="r2", cost=1),
    ]
    write(tmp_path, "r1", [*PRODUCER, *outage])
    assert report(spark, tmp_path, from_us=START_US + from_s * S).by_name["outages"].count() == count


def test_a_report_of_some_addresses_has_nothing_of_links_of_others(spark: SparkSession, tmp_path: Path) -> None:
    told = [
        row
        for number in (1, 2)
        for row in (
            at(1, "credit", link=number, starved_us=S, cause="takers"),
            at(1, "drop", link=number, count=2, cause="stalled"),
            delivery(1, number, 0, outcome="rejected"),
        )
    ]
    write(tmp_path, "r1", [*PRODUCER, link(2, "producer", "incoming", address="b"), *told])
    tables = report(spark, tmp_path, address="b").by_name
    for name in ("credit", "credit_by_window", "drops"):
        assert rows(tables[name], "link", "address") == {(2, "b")}, name
    assert rows(tables["noteworthy"], "incoming", "address") == {(2, "b")}


def test_an_outage_of_a_report_of_addresses_counts_what_failed_of_those(spark: SparkSession, tmp_path: Path) -> None:
    lost = at(2, "neighbor", event="closed", neighbor="r2", cause="silent")
    failed = [delivery(3, number, 0, outcome="released") for number in (1, 1, 2)]
    write(tmp_path, "r1", [*PRODUCER, link(2, "producer", "incoming", address="b"), lost, *failed])
    for address, count in ((None, 3), ("a", 2), ("b", 1), ("c", 0)):
        assert rows(report(spark, tmp_path, address=address).by_name["outages"], "failed") == {(count,)}, address


@pytest.mark.parametrize(("pattern", "near"), [("rdrs.*", ("orders.new", "news")), ("news", ())])
def test_where_no_address_matches_those_most_like_it_are_known(
    spark: SparkSession, tmp_path: Path, pattern: str, near: tuple[str, ...]
) -> None:
    names = ("news", "orders.new", "_amqpmesh/probe/rdrs")
    links = [link(number, "producer", "incoming", address=name) for number, name in enumerate(names, 2)]
    write(tmp_path, "r1", [node(), connection(1, "client"), *links, delivery(1, 2, 0)])
    assert report(spark, tmp_path, address=pattern).near == near


def test_the_reference_has_every_column_of_every_table(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "r1", [*PRODUCER, delivery(1, 1, 0)])
    columns = {column for table in report(spark, tmp_path).by_name.values() for column in table.columns}
    told = re.findall(r"^\| (`.+?`) \|", (ROOT / "docs" / "reference" / "report-tables.md").read_text(), re.MULTILINE)
    assert {name for cell in told for name in re.findall(r"`(\w+)`", cell)} == columns
