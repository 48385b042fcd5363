"""Who waited for credit, who wanted it back, and who kept deliveries without an outcome."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from linklogs.replay import windows
from mesh_tests.link_logs import START_US, S, connection, delivery, link, node, write
from mesh_tests.spark.reports import PRODUCER, at, report, rows


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


def test_waits_that_cannot_be_are_cut_to_the_time_of_which_there_are_records(
    spark: SparkSession, tmp_path: Path
) -> None:
    wild = [at(second, "credit", link=1, starved_us=starved_us, cause="takers", credit=1 << 62, count=1 << 62)
            for second, starved_us in ((20, 1 << 62), (21, -(1 << 62)), (30, S))]  # fmt: skip
    write(tmp_path, "r1", [*PRODUCER, *wild, delivery(0, 1, 0), delivery(39, 1, 0)])
    tables = report(spark, tmp_path).by_name
    assert rows(tables["credit"], "starved_us", "times", "share") == {(21 * S, 2, 0.525)}
    by_window = sorted((row.window.second, row.starved_us) for row in tables["credit_by_window"].collect())
    assert by_window == [(0, 10 * S), (10, 10 * S), (20, S)]


def test_windows_of_waits_are_as_wide_as_those_of_links(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "MOST_ROWS", 1)
    told = [at(second, "credit", link=1, starved_us=S, cause="takers") for second in range(1, 40)]
    write(tmp_path, "r1", [*PRODUCER, *told, delivery(0, 1, 0), delivery(39, 1, 0)])
    tables = report(spark, tmp_path)
    assert [row.starved_us for row in tables.by_name["credit_by_window"].collect()] == [39 * S]
    assert tables.wider_us(10 * S)["credit_by_window"] == tables.wider_us(10 * S)["links_by_window"]


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
