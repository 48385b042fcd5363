"""The map of a mesh: boxes of nodes and clients with their places, and the lines between routers. Sans-IO.

Routers stand in columns by their distance from one end of the mesh, so that lines lead from left to right. Brokers and
groups of clients stand below their router. A map has at most MAX_BOXES boxes: broken nodes come first, then nodes in
the order of the file, and one box counts all others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, Final

from mesh.watch.mesh_plan import MeshState
from mesh.watch.node_summary import UNKNOWN

if TYPE_CHECKING:
    from mesh.watch.mesh_plan import MeshPlan
    from mesh.watch.node_summary import NodeSummary

MAX_BOXES: Final = 200
_MAX_NODES: Final = 150
_GROUPS: Final = ((12, 4), (30, 2), (_MAX_NODES, 1))
"""Up to how many routers on a map, and the most boxes of clients below each of them."""
WIDTH: Final = 176
_HEIGHT: Final = 40
_SUB_HEIGHT: Final = 22
_SUB_X: Final = 14
_GAP_X: Final = 68
_GAP_Y: Final = 26
_SUB_GAP: Final = 4
_SWEEPS: Final = 4


class MeshLayout:
    """Draws maps of the mesh of ``plan``. The columns of the routers stay the same while the same nodes are shown."""

    def __init__(self, plan: MeshPlan) -> None:
        self._plan = plan
        self._shown: tuple[str, ...] = ()
        self._columns: list[list[str]] = []

    def draw(self, state: MeshState) -> dict[str, Any]:
        """Return `boxes`, `lines`, and the `width` and `height` of the map in pixels."""
        shown = self._choose(state)
        routers = tuple(name for name in shown if self._plan.roles[name] != "broker")
        if routers != self._shown:
            self._shown, self._columns = routers, list(_columns(routers, self._adjacent(routers)))
        stacks = self._stacks(state, shown, routers)
        heights = {name: _HEIGHT + len(stack) * (_SUB_HEIGHT + _SUB_GAP) + _GAP_Y for name, stack in stacks.items()}
        height = max((sum(heights[name] for name in column) for column in self._columns), default=0)
        boxes: list[dict[str, Any]] = []
        places: dict[str, tuple[int, int]] = {}
        for number, column in enumerate(self._columns):
            x, y = number * (WIDTH + _GAP_X), (height - sum(heights[name] for name in column)) // 2
            for name in column:
                places[name] = (x, y)
                boxes.append(self._node_box(state, name, x, y, WIDTH, _HEIGHT))
                below = y + _HEIGHT
                for sub in stacks[name]:
                    below += _SUB_GAP
                    boxes.append({**sub, "x": x + _SUB_X, "y": below, "width": WIDTH - _SUB_X, "height": _SUB_HEIGHT})
                    below += _SUB_HEIGHT
                y += heights[name]
        width = max(len(self._columns) * (WIDTH + _GAP_X) - _GAP_X, WIDTH)
        more = len(self._plan.roles) - len(shown)
        if more:
            boxes.append(
                {"id": "more", "kind": "more", "state": "running", "count": more, "x": 0, "y": height, "width": WIDTH,
                 "height": _SUB_HEIGHT}
            )  # fmt: skip
            height += _SUB_HEIGHT + _GAP_Y
        return {"width": width, "height": max(height - _GAP_Y, _HEIGHT), "boxes": boxes,
                "lines": list(self._lines(state, places))}  # fmt: skip

    def _choose(self, state: MeshState) -> tuple[str, ...]:
        names = list(self._plan.roles)
        if len(names) <= _MAX_NODES:
            return tuple(names)
        broken = [name for name in names if state.of_node(name) not in ("running", UNKNOWN)]
        kept = set(list(dict.fromkeys([*broken, *names]))[:_MAX_NODES])
        return tuple(name for name in names if name in kept)

    def _adjacent(self, routers: tuple[str, ...]) -> dict[str, list[str]]:
        adjacent: dict[str, list[str]] = {name: [] for name in routers}
        for planned in self._plan.connections:
            if planned.one in adjacent and planned.other in adjacent:
                adjacent[planned.one].append(planned.other)
                adjacent[planned.other].append(planned.one)
        return adjacent

    def _stacks(
        self, state: MeshState, shown: tuple[str, ...], routers: tuple[str, ...]
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the boxes below each router: its brokers, and its clients by user."""
        stacks: dict[str, list[dict[str, Any]]] = {name: [] for name in routers}
        for broker in shown:
            if self._plan.roles[broker] == "broker":
                router = next((name for name in self._plan.broker_routers[broker] if name in stacks), None)
                if router is not None:
                    stacks[router].append(self._node_box(state, broker, 0, 0, 0, 0))
        wanted = next(most for routers_most, most in _GROUPS if len(routers) <= routers_most)
        most = min(wanted, (MAX_BOXES - 1 - len(shown)) // max(len(routers), 1))
        for name in routers:
            if name in state.nodes:
                stacks[name] += _client_boxes(state.nodes[name], most)
        return stacks

    def _node_box(self, state: MeshState, name: str, x: int, y: int, width: int, height: int) -> dict[str, Any]:
        node = state.nodes.get(name)
        box: dict[str, Any] = {
            "id": f"node {name}", "kind": self._plan.roles[name], "name": name, "state": state.of_node(name),
            "x": x, "y": y, "width": width, "height": height,
        }  # fmt: skip
        if name in self._plan.existing:
            box["is_existing"] = True
        if node is not None:
            told = ("age_s", "clients", "in_rate", "out_rate", "waiting_producers")
            box |= {field: node.row[field] for field in told}
            if node.depth is not None:
                box["depth"] = node.depth
            if node.state == UNKNOWN:
                box["unknown_because"] = node.row["unknown_because"]
        return box

    def _lines(self, state: MeshState, places: dict[str, tuple[int, int]]) -> Iterator[dict[str, Any]]:
        middle = _HEIGHT // 2
        for planned in self._plan.connections:
            if planned.one not in places or planned.other not in places:
                continue
            one, other = sorted((planned.one, planned.other), key=lambda name: places[name])
            (x1, y1), (x2, y2) = places[one], places[other]
            line = {"id": f"line {one} {other}", "from": one, "to": other, "cost": planned.cost,
                    "state": state.of_connection(planned), "y1": y1 + middle, "y2": y2 + middle}  # fmt: skip
            if x1 == x2:
                # Both in one column: the line bends around what stands between them.
                yield {**line, "x1": x1 + WIDTH, "x2": x2 + WIDTH, "bend": min(12 + abs(y2 - y1) // 8, _GAP_X - 16)}
            else:
                yield {**line, "x1": x1 + WIDTH, "x2": x2, "bend": 0}


def _client_boxes(node: NodeSummary, most: int) -> Iterator[dict[str, Any]]:
    clients = node.row["clients"] or 0
    if most <= 0 or not clients:
        return
    ranked = list(node.users.items())
    named = ranked if len(ranked) <= most and not node.is_cut else ranked[: most - 1]
    for user, count in named:
        yield {"id": f"clients {node.name} {user}", "kind": "clients", "state": node.state, "node": node.name,
               "user": user, "count": count}  # fmt: skip
    others = clients - sum(count for _, count in named)
    if others > 0:
        yield {"id": f"clients {node.name}", "kind": "clients", "state": node.state, "node": node.name,
               "users": len(ranked) - len(named), "is_rest": bool(named), "count": others}  # fmt: skip


def _columns(names: tuple[str, ...], adjacent: dict[str, list[str]]) -> Iterator[list[str]]:
    """Yield columns of ``names``: by distance from one end of each connected part, high columns cut into several."""
    most = max(6, ceil(1.6 * sqrt(len(names))))
    left = dict.fromkeys(names)
    layers: list[list[str]] = []
    while left:
        first = next(iter(left))
        start = list(_distances(first, adjacent))[-1]
        distances = _distances(start, adjacent)
        part: list[list[str]] = [[] for _ in range(max(distances.values()) + 1)]
        for name in [name for name in left if name in distances]:
            part[distances[name]].append(name)
            del left[name]
        if 2 * distances[first] >= len(part):
            # The first router of the file stands on the left.
            part.reverse()
        _untangle(part, adjacent)
        for number, layer in enumerate(part):
            # A part without a connection to the others stands below them.
            if number == len(layers):
                layers.append([])
            layers[number] += layer
    for layer in layers:
        high = ceil(len(layer) / max(1, round(len(layer) / most)))
        for begin in range(0, len(layer), high):
            yield layer[begin : begin + high]


def _distances(start: str, adjacent: dict[str, list[str]]) -> dict[str, int]:
    found, waiting = {start: 0}, deque([start])
    while waiting:
        name = waiting.popleft()
        for other in adjacent[name]:
            if other not in found:
                found[other] = found[name] + 1
                waiting.append(other)
    return found


def _untangle(layers: list[list[str]], adjacent: dict[str, list[str]]) -> None:
    """Order each layer by the middle of its neighbors in the layer before or behind, some times to and fro."""
    for sweep in range(_SWEEPS):
        numbers: Iterable[int] = range(1, len(layers)) if sweep % 2 == 0 else range(len(layers) - 2, -1, -1)
        for number in numbers:
            fixed = layers[number - 1 if sweep % 2 == 0 else number + 1]
            places = {name: (place + 0.5) / len(fixed) for place, name in enumerate(fixed)}
            own = {name: (place + 0.5) / len(layers[number]) for place, name in enumerate(layers[number])}
            means = {}
            for name in layers[number]:
                near = [places[other] for other in adjacent[name] if other in places]
                means[name] = sum(near) / len(near) if near else own[name]
            layers[number].sort(key=lambda name, means=means: means[name])  # type: ignore[misc]
