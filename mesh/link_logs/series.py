"""What the charts over time show, as columns: traffic of the mesh, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mesh.link_logs.summary import Summary
from mesh.link_logs.words import not_accepted

NAMES = {
    ("in", "client"): "from clients",
    ("out", "client"): "to clients",
    ("in", "queue"): "from queues",
    ("out", "queue"): "to queues",
}
LATENCIES = ("p50_us", "p99_us", "max_us")
MOST_POINTS = 20_000
"""More windows than that make no page that anybody can open."""


def series(summary: Summary) -> dict[str, Any]:
    """Times and the window in s, rates a second, latency in ms. Where nothing moved the rate is 0, with no latency."""
    rows = summary.tables["mesh_by_window"].to_pylist()
    window_s = summary.window_us("mesh_by_window") / 1e6
    if not rows:
        return {"window_s": window_s, "throughput": None, "latency": None}
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


def _times(rows: list[dict[str, Any]], window_s: float) -> list[float]:
    """Every window from the first to the last; of very many only those in which something moved."""
    known = sorted({_seconds(row["window"]) for row in rows})
    count = round((known[-1] - known[0]) / window_s) + 1
    if count > MOST_POINTS:
        return known[:MOST_POINTS]
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
