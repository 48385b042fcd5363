"""Throughput, latency and outcomes of small logs whose totals are known."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mesh_tests.damage import spoil
from mesh_tests.link_logs import START_US, S, connection, delivery, line, link, node, write
from mesh_tests.spark.reports import only, report, rows
from recording.columns import BUCKET_ERROR


def test_a_message_over_two_routers_counts_once_in_the_mesh(spark: SparkSession, tmp_path: Path) -> None:
    line(tmp_path, 100)
    tables = report(spark, tmp_path).by_name
    assert rows(tables["mesh"], "side", "peer", "messages") == {("in", "client", 100), ("out", "client", 100)}
    assert rows(tables["routers"], "node", "side", "messages") == {
        (name, side, 100) for name in ("007", "r2") for side in ("in", "out")
    }
    assert rows(tables["users"], "user", "side", "size_bytes") == {("alice", "in", 10_000), ("bob", "out", 10_000)}
    assert rows(tables["addresses"], "address", "side", "accepted") == {("orders", "in", 100), ("orders", "out", 100)}


def test_percentiles_are_off_by_no_more_than_is_stated(spark: SparkSession, tmp_path: Path) -> None:
    line(tmp_path, 100)
    found = only(report(spark, tmp_path).by_name["links"], node="007", link=1)
    for exact, told in ((50_000, found.p50_us), (95_000, found.p95_us), (99_000, found.p99_us)):
        assert abs(told - exact) <= exact * BUCKET_ERROR
    assert found.max_us == 100_000


def test_windows_add_up_to_the_whole(spark: SparkSession, tmp_path: Path) -> None:
    line(tmp_path, 90)
    table = report(spark, tmp_path).by_name["links_by_window"]
    of_link = [row for row in table.collect() if (row.node, row.link) == ("r2", 2)]
    assert sorted((row.window.second, row.messages, row.messages_per_s) for row in of_link) == [
        (0, 30, 3.0),
        (10, 30, 3.0),
        (20, 30, 3.0),
    ]


def test_a_summary_tells_the_same_as_its_deliveries(spark: SparkSession, tmp_path: Path) -> None:
    known = [node(), connection(1, "client"), link(1, "producer", "incoming", address="a")]
    full = [delivery(0.5, 1, 0, took) for took in (100, 101, 5000)]
    summary = [
        delivery(1.0, 1, 0, 101, kind="traffic", count=2, size_bytes=200),
        delivery(1.0, 1, 0, 5000, kind="traffic"),
    ]
    write(tmp_path / "full", "r1", [*known, *full])
    write(tmp_path / "summary", "r1", [*known, *summary])
    tables = [report(spark, tmp_path / level).by_name["mesh_by_window"] for level in ("full", "summary")]
    assert tables[0].collect() == tables[1].collect()


def test_a_second_that_ends_where_a_window_begins_is_of_the_window_before(spark: SparkSession, tmp_path: Path) -> None:
    write(
        tmp_path,
        "r1",
        [
            node(),
            connection(1, "client"),
            link(1, "producer", "incoming", address="a"),
            delivery(10, 1, 0, kind="traffic"),
            delivery(10, 1, 0),
        ],
    )
    table = report(spark, tmp_path).by_name["mesh_by_window"]
    assert {(row.window.second, row.messages) for row in table.collect()} == {(0, 1), (10, 1)}


def test_a_multicast_counts_once_where_it_came_in_and_each_copy_where_it_went(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(
        tmp_path,
        "r1",
        [
            node(),
            connection(1, "client"),
            link(1, "producer", "incoming", address="news"),
            link(2, "consumer", "outgoing", address="news"),
            link(3, "consumer", "outgoing", address="news"),
            delivery(1, 1, 0, part="many"),
            delivery(1, 1, 2, part="copy"),
            delivery(1, 1, 3, part="copy", outcome="released"),
        ],
    )
    table = report(spark, tmp_path).by_name["mesh"]
    assert rows(table, "side", "messages", "accepted", "released") == {("in", 1, 1, 0), ("out", 2, 1, 1)}


def test_what_a_queue_gives_is_told_apart_from_what_clients_send(spark: SparkSession, tmp_path: Path) -> None:
    write(
        tmp_path,
        "r1",
        [
            node(),
            connection(1, "client"),
            connection(2, "broker", container="b1"),
            link(1, "producer", "incoming", address="work"),
            link(2, "broker", "outgoing", address="work", connection=2),
            link(3, "broker", "incoming", address="work", connection=2),
            link(4, "consumer", "outgoing", address="work"),
            delivery(1, 1, 2),
            delivery(2, 1, 2),
            delivery(3, 3, 4),
        ],
    )
    write(
        tmp_path,
        "b1",
        [node("broker"), connection(1, "router"), link(1, "producer", "incoming"), delivery(1, 1, 0)],
    )
    table = report(spark, tmp_path).by_name["mesh"]
    assert rows(table, "side", "peer", "messages") == {
        ("in", "client", 2),
        ("out", "queue", 2),
        ("in", "queue", 1),
        ("out", "client", 1),
    }


PROBES = ("_amqpmesh/probe/f44839ba-r1", "_amqpmesh/broker/b1/probe-f44839ba")
OF_CLIENTS = ("a", "_topo/0/r1/temp.x", "_amqpmesh/broker/b1/temp.x")


def test_what_the_mesh_sends_itself_is_traffic_of_nobody(spark: SparkSession, tmp_path: Path) -> None:
    told = [node(), connection(1, "client", container="app", user="u", remote_address="h:1")]
    for number, address in enumerate((*PROBES, *OF_CLIENTS)):
        came, went = 2 * number + 1, 2 * number + 2
        told += [
            link(came, "producer", "incoming", address=address),
            link(went, "consumer", "outgoing", address=address, treatment="balanced"),
            delivery(number, came, went),
        ]
    write(tmp_path, "r1", told)
    tables = report(spark, tmp_path).by_name
    for name in ("mesh", "users", "talkers"):
        assert rows(tables[name], "side", "messages") == {("in", len(OF_CLIENTS)), ("out", len(OF_CLIENTS))}, name
    for name in ("addresses", "takers"):
        assert rows(tables[name], "address") == {(address,) for address in OF_CLIENTS}, name
    assert rows(tables["routers"], "messages") == {(len(PROBES + OF_CLIENTS),)}
    assert tables["links"].count() == 2 * len(PROBES + OF_CLIENTS)


@pytest.mark.parametrize(("pattern", "messages"), [("ord*", 3), ("orders", 3), ("o?ders", 3), ("news", 2), ("ews", 0)])
def test_an_address_pattern_cuts_the_report(spark: SparkSession, tmp_path: Path, pattern: str, messages: int) -> None:
    write(
        tmp_path,
        "r1",
        [
            node(),
            connection(1, "client"),
            link(1, "producer", "incoming", address="orders"),
            link(2, "producer", "incoming", address="news"),
            *(delivery(at, 1, 0) for at in range(3)),
            *(delivery(at, 2, 0) for at in range(2)),
        ],
    )
    table = report(spark, tmp_path, address=pattern).by_name["mesh"]
    assert sum(row.messages for row in table.collect()) == messages


def test_rates_are_over_the_time_that_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    line(tmp_path, 90)
    tables = report(spark, tmp_path, from_us=START_US + 8 * S, to_us=START_US + 12 * S)
    assert (tables.time.from_us, tables.time.to_us) == (START_US + 8 * S, START_US + 12 * S)
    found = only(tables.by_name["mesh"], side="in")
    assert (found.messages, found.messages_per_s) == (12, 3.0)


def test_only_records_of_the_time_count(spark: SparkSession, tmp_path: Path) -> None:
    line(tmp_path, 30)
    table = report(spark, tmp_path, from_us=START_US + 10 * S, to_us=START_US + 20 * S).by_name["mesh"]
    assert only(table, side="in").messages == 10


NO_RECORDS = (
    {**delivery(1, 1, 0), "at_us": None},
    {**delivery(1, 1, 0), "at_us": 1 << 62},
    {**delivery(1, 1, 0), "at_us": -1},
    {**link(1, "producer", "incoming", address="b"), "link": None},
    {**link(2, "producer", "incoming", address="b"), "run": None},
    {**link(3, "circuit", "outgoing", name="c1", address="b"), "at_us": None},
    {**link(4, "producer", "incoming", address="b"), "at_us": 1 << 62},
)


def test_records_that_lack_what_each_record_has_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    line(tmp_path, 100)
    write(tmp_path, "007", [*NO_RECORDS], name="1-1")
    tables = report(spark, tmp_path)
    assert (tables.time.from_us, tables.time.seconds) == (START_US, 30.0)
    assert rows(tables.by_name["mesh"], "side", "messages") == {("in", 100), ("out", 100)}
    assert rows(tables.by_name["links"], "node", "link", "address") == {
        (node, number, "orders") for node in ("007", "r2") for number in (1, 2)
    }
    assert all(table.toArrow().to_pylist() is not None for table in tables.by_name.values())


@pytest.mark.parametrize("kind", ["delivery", "link"])
def test_a_file_whose_records_are_damaged_is_named_once_and_the_rest_is_reported(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    line(tmp_path, 100)
    (path,) = (tmp_path / "node=007").rglob("*.parquet")
    for spoiled in {kind, "delivery"}:
        spoil(path, spoiled, "run")
    tables = report(spark, tmp_path)
    (notice,) = tables.read.notices
    assert f"{path} is damaged: " in notice
    assert rows(tables.by_name["mesh"], "side", "messages") == {("out", 100)}
