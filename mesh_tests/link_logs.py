"""Small link logs, written as the writer does: a mesh of two routers with a client at each end."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow

from linklogs.parquet import batch_of_rows, metadata, open_writer
from recording.columns import RecordKind

NOTHING: Mapping[str, str] = {}
Row = Mapping[str, str | int | None]

START_US = 1_795_478_400_000_000
"""2026-11-24 00:00 UTC, an hour's beginning"""
HOUR = "2026-11-24T00"
RUN = 1
S = 1_000_000


def write(
    root: Path,
    node: str,
    rows: list[Row],
    *,
    hour: str = HOUR,
    name: str = "1-0",
    more: Mapping[str, str] = NOTHING,
) -> Path:
    """A file with a group of rows for each kind that there is."""
    path = root / f"node={node}" / f"hour={hour}" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_writer(path, {**metadata(node, RUN, "test"), **more}) as writer:
        for kind in RecordKind:
            of_kind = [row for row in rows if row["kind"] == kind]
            if of_kind:
                writer.write_batch(batch_of_rows(of_kind))
    return path


def for_workers(*paths: Path, is_handed_over: bool = False) -> pyarrow.RecordBatch:
    """As a worker of Spark hears of files: to open them itself, or with their octets."""
    columns = {
        "node": pyarrow.array([path.parent.parent.name.removeprefix("node=") for path in paths], pyarrow.string()),
        "path": pyarrow.array([f"file:{path}" if is_handed_over else str(path) for path in paths], pyarrow.string()),
        "size_bytes": pyarrow.array([path.stat().st_size for path in paths], pyarrow.int64()),
        "content": pyarrow.array([path.read_bytes() if is_handed_over else None for path in paths], pyarrow.binary()),
    }
    return pyarrow.record_batch(columns)


def node(role: str = "router", **more: str | int) -> Row:
    return {"kind": RecordKind.NODE, "event": "opened", "at_us": START_US, "run": RUN, "role": role, **more}


def connection(number: int, role: str, **facts: str | int) -> Row:
    opened = {"kind": RecordKind.CONNECTION, "event": "opened", "at_us": START_US, "run": RUN}
    return {**opened, "connection": number, "role": role, **facts}


def link(number: int, role: str, direction: str, **facts: str | int) -> Row:
    opened = {"kind": RecordKind.LINK, "event": "opened", "at_us": START_US, "run": RUN}
    return {**opened, "link": number, "role": role, "direction": direction, "connection": 1, **facts}


def delivery(at_s: float, incoming: int, outgoing: int, took_us: int = 1000, **more: str | int) -> Row:
    """At so many seconds after the start."""
    moved = {"kind": RecordKind.DELIVERY, "at_us": START_US + round(at_s * S), "run": RUN}
    rest = {"outcome": "accepted", "part": "whole", "count": 1, "size_bytes": 100, "took_us": took_us}
    return {**moved, "incoming": incoming, "outgoing": outgoing, **rest, **more}


def line(root: Path, count: int = 100) -> None:
    """``count`` messages from alice to orders: in at `007`, over a circuit, out at r2 to bob; took 1, 2, 3, ... ms."""
    write(
        root,
        "007",
        [
            node(),
            connection(1, "client", container="app", user="alice", remote_address="10.0.0.1:5000"),
            connection(2, "router", container="r2"),
            link(1, "producer", "incoming", address="orders"),
            link(2, "circuit", "outgoing", address="orders", connection=2, name="c1", ingress="007", egress="r2"),
            *(delivery(i % 30, 1, 2, 1000 * (i + 1)) for i in range(count)),
        ],
    )
    write(
        root,
        "r2",
        [
            node(),
            connection(1, "router", container="007"),
            connection(2, "client", container="shop", user="bob"),
            link(1, "circuit", "incoming", address="orders", name="c1", ingress="007", egress="r2"),
            link(2, "consumer", "outgoing", address="orders", connection=2),
            *(delivery(i % 30, 1, 2, 500 * (i + 1)) for i in range(count)),
        ],
    )
