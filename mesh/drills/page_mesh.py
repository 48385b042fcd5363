"""Computes the drawing of a mesh for a drill's page: the places of routers, brokers and links, and the faults of each.

Routers stand on a circle, in the order of the topology; brokers stand outside of the circle, near their routers.
Lengths are in units of the SVG, about a pixel each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mesh.drills.report import Drawing, DrillReport, FaultReport

NODE_HEIGHT = 26.0
ROOM_EACH = 72.0
"""Length of the circle's arc for each router."""
LEAST_RADIUS = 78.0
BROKER_DISTANCE = 56.0
MARGIN = 16.0
LEAST_WIDTH = 260.0
LEAST_HEIGHT = 180.0
LETTER = 7.2
LONGEST = 12
FEW = 14
"""The greatest number of routers for which three drawings fit beside each other."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class DrawnNode:
    name: str
    text: str
    is_broker: bool
    x: float
    y: float
    width: float
    faults: str
    """The ids of the faults that hit the node: `1, 3`"""


@dataclass(frozen=True, slots=True)
class DrawnLine:
    start: Point
    end: Point
    name: str
    cost: int | None
    """Cost of the connection; None for a connection between router and broker."""
    label: Point
    faults: str


@dataclass(frozen=True, slots=True)
class MeshScene:
    """A drawing of the mesh in one phase of the drill: before, during, or after the faults."""

    title: str
    faults: tuple[FaultReport, ...]
    nodes: tuple[DrawnNode, ...]
    lines: tuple[DrawnLine, ...]
    box: str
    is_large: bool


def scenes(report: DrillReport) -> list[MeshScene]:
    """Return the drawings of the mesh before, during and after the faults; none if the report knows no router."""
    if not report.drawing.routers:
        return []
    stayed = tuple(fault for fault in report.faults if fault.healed_s is None)
    return [
        _scene("Before", report.drawing, ()),
        _scene("During", report.drawing, report.faults),
        _scene("After", report.drawing, stayed),
    ]


def _scene(title: str, drawing: Drawing, faults: tuple[FaultReport, ...]) -> MeshScene:
    places = _places(drawing)
    hits = _hits(faults)
    nodes = tuple(_nodes(drawing, places, hits))
    return MeshScene(
        title=title,
        faults=faults,
        nodes=nodes,
        lines=tuple(_lines(drawing, places, hits)),
        box=_box(nodes),
        is_large=len(drawing.routers) > FEW,
    )


def _box(nodes: Sequence[DrawnNode]) -> str:
    """Return the viewBox of the SVG: the bounds of all nodes, with a margin for labels that stick out."""
    left = min(node.x - node.width / 2 for node in nodes) - MARGIN
    right = max(node.x + node.width / 2 for node in nodes) + MARGIN
    top = min(node.y for node in nodes) - NODE_HEIGHT / 2 - MARGIN
    bottom = max(node.y for node in nodes) + NODE_HEIGHT / 2 + MARGIN
    width, height = max(right - left, LEAST_WIDTH), max(bottom - top, LEAST_HEIGHT)
    return f"{(left + right - width) / 2:.0f} {(top + bottom - height) / 2:.0f} {width:.0f} {height:.0f}"


def _hits(faults: Iterable[FaultReport]) -> dict[frozenset[str], str]:
    """Map each node (one name) or link (the names of both ends) to the ids of the faults that hit it, as text."""
    ids: dict[frozenset[str], list[str]] = {}
    for fault in faults:
        ids.setdefault(frozenset(fault.targets), []).append(fault.id)
    return {targets: _shortened(each) for targets, each in ids.items()}


def _shortened(ids: Sequence[str]) -> str:
    return ", ".join(ids) if len(ids) <= 3 else f"{', '.join(ids[:2])} …"


def _places(drawing: Drawing) -> dict[str, Point]:
    names = drawing.routers
    radius = max(LEAST_RADIUS, len(names) * ROOM_EACH / (2 * math.pi)) if len(names) > 1 else 0.0
    angles = {name: _turn(i / len(names), len(names)) for i, name in enumerate(names)}
    places = {name: _at(angle, radius) for name, angle in angles.items()}
    for name, angle in _broker_angles(drawing, angles).items():
        places[name] = _at(angle, radius + BROKER_DISTANCE)
    return places


def _turn(part: float, count: int) -> float:
    """Return the angle, in radians, of the router after the ``part`` (0 to 1) of the circle of ``count`` routers: two
    routers lie side by side, more routers begin at the top.
    """
    return 2 * math.pi * part + (math.pi if count == 2 else -math.pi / 2)


def _at(angle: float, radius: float) -> Point:
    return round(radius * math.cos(angle), 1), round(radius * math.sin(angle), 1)


def _broker_angles(drawing: Drawing, routers: Mapping[str, float]) -> dict[str, float]:
    """Choose an angle for each broker: the free one nearest to the middle of the broker's routers."""
    count = max(2 * len(routers), len(drawing.brokers), 8)
    first = next(iter(routers.values()))
    free = [first + 2 * math.pi * i / count for i in range(count)]
    taken: dict[str, float] = {}
    for name, attached in drawing.brokers:
        wanted = _middle([routers[router] for router in attached if router in routers])
        taken[name] = min(free, key=lambda angle: (round(1 - math.cos(angle - wanted), 6), angle))
        free.remove(taken[name])
    return taken


def _middle(angles: Sequence[float]) -> float:
    x, y = sum(map(math.cos, angles)), sum(map(math.sin, angles))
    # The angles of a broker's routers have no middle if they cancel each other out: the broker then goes to the bottom.
    return math.atan2(y, x) if math.hypot(x, y) > 1e-6 else math.pi / 2


def _nodes(drawing: Drawing, places: Mapping[str, Point], hits: Mapping[frozenset[str], str]) -> Iterable[DrawnNode]:
    brokers = {name for name, _ in drawing.brokers}
    for name, (x, y) in places.items():
        text = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
        width = max(40.0, len(text) * LETTER + 18)
        yield DrawnNode(name, text, name in brokers, x, y, width, hits.get(frozenset({name}), ""))


def _lines(drawing: Drawing, places: Mapping[str, Point], hits: Mapping[frozenset[str], str]) -> Iterable[DrawnLine]:
    for one, other, cost in drawing.links:
        yield _line(one, other, cost, places, hits)
    for broker, attached in drawing.brokers:
        for router in attached:
            yield _line(router, broker, None, places, hits)


def _line(
    one: str, other: str, cost: int | None, places: Mapping[str, Point], hits: Mapping[frozenset[str], str]
) -> DrawnLine:
    start, end = places[one], places[other]
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    # All lines across the circle have their middle near its center, so their labels are moved away from there.
    part = 0.5 if math.hypot(*middle) > LEAST_RADIUS / 4 else 0.36
    label = (start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part)
    name = f"{one} to {other}" + (f", cost {cost}" if cost is not None else "")
    return DrawnLine(start, end, name, cost, label, hits.get(frozenset({one, other}), ""))
