"""Computes the drawings of a report's page: heat map of links, latency histogram, and map of the mesh.

Lengths are in units of the SVG, about a pixel each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mesh.reports import words
from mesh.reports.summary import Summary

WIDTH = 1000
MOST_LINKS = 30
MOST_COLUMNS = 120
ROW_HEIGHT = 18
LABELS = 250
"""The part of the width for the names of links."""
BARS_HEIGHT = 180
NODE_LETTER = 7.2


@dataclass(frozen=True, slots=True)
class Square:
    x: float
    width: float
    shade: float
    text: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    name: str
    y: int
    squares: tuple[Square, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    rows: tuple[HeatRow, ...]
    height: int
    most_per_s: float


def heat_map(summary: Summary) -> HeatMap | None:
    """Return the drawing of the busiest links over time, at most 30, or None without traffic.

    The darker a square is, the more messages a second the link had then.
    """
    if summary.began_us is None or summary.ended_us is None:
        return None
    columns = min(MOST_COLUMNS, max(1, (summary.ended_us - summary.began_us) // summary.window_us("links_by_window")))
    busiest = _busiest(summary)
    rates = _rates(summary, [(row["node"], row["run"], row["link"]) for row in busiest], columns)
    most = max((rate for line in rates for rate in line), default=0.0)
    if not most:
        return None
    rows = tuple(
        HeatRow(link_name(row), i * ROW_HEIGHT, _squares(line, most))
        for i, (row, line) in enumerate(zip(busiest, rates, strict=True))
    )
    return HeatMap(rows, len(rows) * ROW_HEIGHT, most)


def link_name(row: dict[str, Any]) -> str:
    """Return the name of a link's row, such as `r1: orders, to shop`."""
    way = {"in": "from", "out": "to"}.get(row["side"] or "", "of")
    return f"{row['node']}: {row['address'] or 'unknown'}, {way} {row['container'] or row['role'] or row['link']}"


def _busiest(summary: Summary) -> list[dict[str, Any]]:
    rows = summary.tables["links"].slice(0, MOST_LINKS).to_pylist()
    return [row for row in rows if row["messages"]]


def _rates(summary: Summary, keys: list[tuple[Any, ...]], columns: int) -> list[list[float]]:
    began_us, ended_us = summary.began_us or 0, summary.ended_us or 0
    lines = {key: [0.0] * columns for key in keys}
    wide_s = (ended_us - began_us) / columns / 1e6
    table = summary.tables["links_by_window"].select(["window", "node", "run", "link", "messages"])
    for window, node, run, link, messages in zip(*(column.to_pylist() for column in table.columns), strict=True):
        if (line := lines.get((node, run, link))) is not None:
            place = int((window.timestamp() * 1e6 - began_us) * columns / (ended_us - began_us))
            line[min(max(place, 0), columns - 1)] += messages / wide_s
    return list(lines.values())


def _squares(line: list[float], most: float) -> tuple[Square, ...]:
    width = (WIDTH - LABELS) / len(line)
    # The shade follows the square root of the rate, because otherwise one busy link would leave all others white.
    return tuple(
        Square(round(LABELS + i * width, 2), round(width, 2), round(math.sqrt(rate / most), 3), words.rate(rate))
        for i, rate in enumerate(line)
        if rate
    )


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    text: str


@dataclass(frozen=True, slots=True)
class LatencyHistogram:
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]


def distribution(summary: Summary) -> LatencyHistogram | None:
    """Return the histogram of the latency of messages that clients sent, or None without any.

    The histogram has a bar for each bucket of latencies, on a logarithmic axis.
    """
    rows = [row for row in summary.rows("latency") if (row["side"], row["peer"]) == ("in", "client")]
    if not rows:
        return None
    least = math.floor(math.log10(max(1, min(row["least_us"] for row in rows))))
    most = math.ceil(math.log10(max(row["largest_us"] for row in rows) + 2))
    scale = WIDTH / max(1, most - least)
    tallest = max(row["messages"] / _width(row) for row in rows)
    ticks = tuple(
        Tick(round((power - least) * scale, 1), words.duration(10**power)) for power in range(least, most + 1)
    )
    return LatencyHistogram(tuple(_bar(row, least, scale, tallest) for row in rows), ticks)


def _width(row: dict[str, Any]) -> float:
    """Return the width of a latency bucket on the logarithmic axis: 1 if its latencies span a factor of ten."""
    return math.log10(max(1, row["largest_us"]) + 1) - math.log10(max(1, row["least_us"]))


def _bar(row: dict[str, Any], least: int, scale: float, tallest: float) -> Bar:
    x = (math.log10(max(1, row["least_us"])) - least) * scale
    width = max(1.0, _width(row) * scale)
    # The area of a bar shows its count, because buckets differ in width on a logarithmic axis.
    height = max(1.0, BARS_HEIGHT * row["messages"] / _width(row) / tallest)
    span = f"{words.duration(row['least_us'])} to {words.duration(row['largest_us'])}: {row['messages']:,}"
    return Bar(round(x, 2), round(BARS_HEIGHT - height, 2), round(width, 2), round(height, 2), span)


@dataclass(frozen=True, slots=True)
class MapNode:
    name: str
    x: float
    y: float
    width: float


@dataclass(frozen=True, slots=True)
class MapLink:
    start: tuple[float, float]
    end: tuple[float, float]
    load: float
    """Load of the connection from 0 to 1, where 1 is the busiest connection."""
    width: float
    text: str


@dataclass(frozen=True, slots=True)
class MeshMap:
    nodes: tuple[MapNode, ...]
    ways: tuple[MapLink, ...]
    box: str


def topology(summary: Summary) -> MeshMap | None:
    """Return the drawing of the mesh, or None without routers: routers on a circle, and darker and wider lines for
    busier connections.
    """
    edges = summary.rows("edges")
    names = sorted({row[end] for row in edges for end in ("node", "neighbor") if row[end]})
    if not names:
        return None
    radius = max(90.0, len(names) * 76 / (2 * math.pi)) if len(names) > 1 else 0.0
    places = {name: _place(i, len(names), radius) for i, name in enumerate(names)}
    nodes = tuple(MapNode(name, *places[name], max(40.0, len(name) * NODE_LETTER + 18)) for name in names)
    wide, high = radius + max(node.width for node in nodes) / 2 + 12, radius + 34
    box = f"{-wide:.0f} {-high:.0f} {2 * wide:.0f} {2 * high:.0f}"
    return MeshMap(nodes, tuple(_ways(edges, places)), box)


def _place(i: int, count: int, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * i / count + (math.pi if count == 2 else -math.pi / 2)
    return round(radius * math.cos(angle), 1), round(radius * math.sin(angle), 1)


def _ways(edges: list[dict[str, Any]], places: dict[str, tuple[float, float]]) -> list[MapLink]:
    """Return a line for each pair of routers, with the traffic of both directions added."""
    both: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in edges:
        if row["node"] and row["neighbor"]:
            one, other = sorted((row["node"], row["neighbor"]))
            both.setdefault((one, other), []).append(row)
    loads = {pair: sum(row["messages_per_s"] or 0 for row in rows) for pair, rows in both.items()}
    most = max(loads.values(), default=0) or 1
    return [
        MapLink(
            places[one], places[other], round(load / most, 3), round(1.5 + 5 * load / most, 2), _told(both[one, other])
        )
        for (one, other), load in loads.items()
    ]


def _told(rows: list[dict[str, Any]]) -> str:
    return "; ".join(
        f"{row['node']} to {row['neighbor']}: {words.rate(row['messages_per_s'])} messages a second, "
        f"cost {row['cost'] or 'unknown'}"
        for row in rows
    )
