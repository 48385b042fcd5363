"""Tables as a report has them, made by hand: all empty but for the rows that are given."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from linklogs.moments import TimeSpan
from mesh.reports.report_request import ReportRequest
from mesh.reports.summary import Summary
from mesh_tests.link_logs import START_US, S

NAMES = (
    "mesh",
    "routers",
    "links",
    "addresses",
    "latency",
    "mesh_by_window",
    "links_by_window",
    "credit",
    "unsettled",
    "queues",
    "takers",
    "outages",
    "circuits",
    "edges",
    "runs",
    "missing",
    "drops",
    "clocks",
)
MOVED: dict[str, Any] = {
    "side": "in",
    "peer": "client",
    "messages": 100,
    "size_bytes": 1000,
    "messages_per_s": 5.0,
    "bytes_per_s": 50.0,
    "accepted": 100,
    **dict.fromkeys(("rejected", "released", "modified", "none", "aborted", "sender_lost"), 0),
    "p50_us": 1000.0,
    "p95_us": 2000.0,
    "p99_us": 3000.0,
    "max_us": 4000,
}
LINK: dict[str, Any] = {"node": "r1", "run": 1, "link": 2, "role": "producer", "container": "app", "address": "orders"}


def summary(notices: tuple[str, ...] = (), **given: list[dict[str, Any]]) -> Summary:
    order = ReportRequest("logs", Path("out"), TimeSpan(), 10 * S, ZoneInfo("UTC"), None, None, ())
    empty = pa.table({name: pa.array([], pa.int64()) for name in ("window", "node", "run", "link", "messages")})
    tables = {name: pa.Table.from_pylist(given[name]) if name in given else empty for name in NAMES}
    return Summary(order, 1000, 5000, notices, START_US, START_US + 20 * S, 20.0, tables, {})


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(START_US / S, UTC) + timedelta(seconds=seconds)


def busy() -> Summary:
    """A mesh in which something moved."""
    return summary(
        mesh=[MOVED, {**MOVED, "side": "out"}],
        addresses=[{**MOVED, "address": "<script>alert(1)</script>"}],
        links=[{**LINK, **MOVED, "user": None}],
        links_by_window=[{**LINK, **MOVED, "window": at(10)}],
        mesh_by_window=[{**MOVED, "window": at(0), "released": 20}, {**MOVED, "window": at(20)}],
        latency=[{"side": "in", "peer": "client", "messages": 7, "least_us": 1024, "largest_us": 1087}],
        edges=[
            {"node": "r1", "neighbor": "r2", "cost": 1, "messages_per_s": 30.0},
            {"node": "r2", "neighbor": "r1", "cost": 1, "messages_per_s": 10.0},
            {"node": "r2", "neighbor": "r3", "cost": 4, "messages_per_s": 0.0},
        ],
    )
