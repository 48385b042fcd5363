"""Computes the charts over time of a report: traffic of the mesh, latency, and outages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import median_low
from typing import Any

from pyarrow import compute

from mesh.reports.summary import Summary
from mesh.reports.words import NOT_ACCEPTED, not_accepted

Row = dict[str, Any]

NAMES = {
    ("in", "client"): "from clients",
    ("out", "client"): "to clients",
    ("in", "queue"): "from queues",
    ("out", "queue"): "to queues",
}
LATENCIES = ("p50_us", "p99_us", "max_us")
MOST_POINTS = 20_000
"""The greatest number of points in a chart, beyond which a browser could not open the page."""
MOST_SHADED = 50


def series(summary: Summary) -> dict[str, Any]:
    """Return the charts' times and window in s, rates in messages a second, and latencies in ms.

    In a window without messages, the rate is 0 and the latency None.
    """
    rows = summary.tables["mesh_by_window"].to_pylist()
    window_s = _charted_s(summary)
    if not rows:
        return {"window_s": window_s, "throughput": None, "latency": None}
    if window_s > summary.window_us("mesh_by_window") / 1e6:
        rows = _wider(rows, window_s)
    at = _times(rows, window_s)
    by_time: dict[float, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in rows:
        by_time.setdefault(_seconds(row["window"]), {})[row["side"], row["peer"]] = row
    lines = [(key, name) for key, name in NAMES.items() if any(key in each for each in by_time.values())]
    return {
        "window_s": window_s,
        "throughput": {
            "at": at,
            "lines": [
                {"label": name, "values": [_rate(by_time.get(time, {}).get(key), window_s) for time in at]}
                for key, name in lines
            ],
            "failed": [_failed(by_time.get(time, {}), window_s) for time in at],
        },
        "latency": {
            "at": at,
            **{name[:-3]: [_latency(by_time.get(time, {}), name) for time in at] for name in LATENCIES},
        },
    }


def shaded(summary: Summary) -> dict[str, Any]:
    """Return the longest outages of neighbors, at most 50, which the page draws as shaded areas behind the charts.

    Times are in s since 1970.
    """
    ends_s = (summary.ended_us or 0) / 1e6
    rows = [row for row in summary.rows("outages") if row["why"] != "itself" and row["at"] is not None]
    rows = sorted(rows, key=lambda row: -(row["lasted_s"] or summary.seconds))[:MOST_SHADED]
    outages = [
        {
            "at_s": _seconds(row["at"]),
            "healed_s": None if row["lasted_s"] is None else _seconds(row["at"]) + row["lasted_s"],
            "id": row["node"],
            "label": f"lost {row['neighbor']}",
        }
        for row in sorted(rows, key=lambda row: row["at"])
    ]
    return {"ends_s": ends_s, "outages": outages}


def _charted_s(summary: Summary) -> float:
    """Return the width of a chart's window in s: a multiple of the table's window that keeps the chart within
    MOST_POINTS.
    """
    window_s = summary.window_us("mesh_by_window") / 1e6
    times = summary.tables["mesh_by_window"]["window"]
    if not len(times):
        return window_s
    bounds = compute.min_max(times).as_py()
    count: int = round((bounds["max"] - bounds["min"]).total_seconds() / window_s) + 1
    return window_s * -(-count // MOST_POINTS)


def _wider(rows: list[Row], window_s: float) -> list[Row]:
    """Merge the rows of a table into wider windows.

    Counts are added. The merged p50 is the median of the p50 values; the merged p99 and maximum are the greatest ones.
    """
    groups: dict[tuple[datetime, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        begins = datetime.fromtimestamp(_seconds(row["window"]) // window_s * window_s, UTC)
        groups[begins, row["side"], row["peer"]].append(row)
    return [_one(begins, group) for (begins, _, _), group in groups.items()]


def _one(begins: datetime, rows: list[Row]) -> Row:
    added = {name: sum(row[name] or 0 for row in rows) for name in ("messages", *NOT_ACCEPTED)}
    known = {name: [row[name] for row in rows if row[name] is not None] for name in LATENCIES}
    worst = {name: max(known[name], default=None) for name in LATENCIES[1:]}
    middle = median_low(known["p50_us"]) if known["p50_us"] else None
    return {**rows[0], **added, **worst, "p50_us": middle, "window": begins}


def _times(rows: list[Row], window_s: float) -> list[float]:
    """Return the start in s of each window from the first to the last, including windows without rows."""
    known = sorted({_seconds(row["window"]) for row in rows})
    count = round((known[-1] - known[0]) / window_s) + 1
    return [round(known[0] + i * window_s, 6) for i in range(count)]


def _seconds(time: datetime) -> float:
    return round(time.timestamp(), 6)


def _rate(row: Mapping[str, Any] | None, window_s: float) -> float:
    return 0.0 if row is None else round(row["messages"] / window_s, 3)


def _failed(rows: Mapping[tuple[str, str], Mapping[str, Any]], window_s: float) -> float:
    return round(sum(not_accepted(row) for (side, _), row in rows.items() if side == "in") / window_s, 3)


def _latency(rows: Mapping[tuple[str, str], Mapping[str, Any]], name: str) -> float | None:
    row = rows.get(("in", "client"))
    return None if row is None or row[name] is None else row[name] / 1000
