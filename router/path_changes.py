"""Tells which paths changed, for the log: compares the paths of two snapshots, while the log wants to know.

The first comparison after the log began to want it tells all paths.
"""

from __future__ import annotations

from collections.abc import Callable

from router.routing.events import PathChosen
from router.routing.snapshot import RoutingSnapshot
from wire.log import Emit


class PathChanges:
    """``routing()`` returns a snapshot of this router's paths."""

    def __init__(self, routing: Callable[[], RoutingSnapshot], emit: Emit) -> None:
        self._routing = routing
        self._emit = emit
        self._known: dict[str, list[str]] = {}

    def tell(self) -> None:
        """Emit an event for each path that differs from the last call's; callers ask `PathChosen.is_wanted` before."""
        routing = self._routing()
        costs = {name: each.cost for name, each in routing.routers.items()}
        found = {
            name: list(each.path) for name, each in routing.routers.items() if each.path and name != routing.router_id
        }
        before, self._known = self._known, found
        for name in sorted(before.keys() | found.keys()):
            path, old = found.get(name), before.get(name)
            if path != old:
                self._emit(PathChosen(name, path, costs.get(name) if path else None, old))
