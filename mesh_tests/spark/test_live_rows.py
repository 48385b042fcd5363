"""Lists of live rows amid a file, which a reader of the ring asked for, change nothing in a report."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from linklogs.replay.run import Tables
from mesh_tests.link_logs import Row, S, connection, delivery, link, node, write
from mesh_tests.spark.reports import at, report

OPENED = [
    node(),
    connection(1, "client", container="app", user="alice"),
    link(1, "producer", "incoming", address="a"),
    link(2, "consumer", "outgoing", address="a"),
    link(3, "circuit", "outgoing", address="a", ingress="r1", egress="r2", path="r1>r2"),
    at(0, "neighbor", event="opened", neighbor="r2", cost=4),
    at(0, "path", event="opened", egress="r2", path="r1>r2", cost=4),
    at(0, "queue", event="opened", queue=9, address="q"),
    at(1, "queue", event="changed", queue=9, depth_count=3, depth_bytes=300, acquired_count=0, oldest_us=S),
    at(2, "credit", event="changed", link=1, credit=0, starved_us=S, cause="takers"),
    at(12, "credit", event="changed", link=2, credit=5, unsettled_count=2),
]
HAPPENED = [
    *(delivery(second, 1, 2) for second in range(3, 9)),
    at(60, "neighbor", event="closed", neighbor="r2", cost=4, cause="silent"),
    at(61, "link", event="closed", link=3, connection=1, cause="gone"),
    at(90, "node", event="closed", cause="stopped"),
]


def listed(seconds: float) -> list[Row]:
    """All that there is then, as a node lists it."""
    rows: list[dict[str, Any]] = [
        {**row, **at(seconds, str(row["kind"])), "event": "live"}
        for row in OPENED[1:7]
        if seconds < 60 or ("neighbor" not in row and row.get("link") != 3)
    ]
    depth = {"depth_count": 3, "depth_bytes": 300, "acquired_count": 0}
    rows.append(at(seconds, "queue", event="live", queue=9, address="q", oldest_us=round(seconds * S), **depth))
    rows.append(at(seconds, "credit", event="live", link=1, credit=0))
    if seconds > 12:
        rows.append(at(seconds, "credit", event="live", link=2, credit=5, unsettled_count=2))
    return [*rows, at(seconds, "node", event="listed", count=len(rows))]


OF_RECORDS = ("missing", "queues_by_window")
"""Tables that count records, or have a row for each window in which a record gives a depth, as files' snapshots do."""


def found(tables: Tables) -> dict[str, list[str]]:
    return {
        name: sorted(str(row.asDict()) for row in table.collect())
        for name, table in tables.by_name.items()
        if name not in OF_RECORDS
    }


def test_a_thing_that_is_listed_again_did_not_begin_again(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "once", "r1", [*OPENED, *HAPPENED])
    write(tmp_path / "again", "r1", [*OPENED, *HAPPENED, *listed(5), *listed(30), *listed(70)])
    once, again = (found(report(spark, tmp_path / name)) for name in ("once", "again"))
    assert once["links"]
    assert {name: again[name] for name in once if again[name] != once[name]} == {}
