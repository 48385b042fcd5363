"""Each of the other tables, of a mesh small enough to know what must be in it."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from linklogs.replay import report_tables
from linklogs.table_files import ordered
from mesh_tests.link_logs import RUN, START_US, S, connection, delivery, link, node, write
from mesh_tests.spark.reports import PRODUCER, at, only, report, rows

ROOT = Path(__file__).parents[2]


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
    monkeypatch.setattr(report_tables, "MOST_NOTEWORTHY", 2)
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
