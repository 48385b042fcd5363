"""How full queues were, and how old what lay in them."""

from pathlib import Path

from pyspark.sql import SparkSession

from mesh_tests.link_logs import START_US, S, node, write
from mesh_tests.spark.reports import at, only, report, rows


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
