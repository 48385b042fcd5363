"""Turns of link routes that attach again: after the loss of a broker or path, thousands may do so at one moment.

A router that attached them all at once would serve nobody for seconds, and its neighbors would take it for lost.
"""

from __future__ import annotations

from itertools import islice
from typing import Protocol

from router.timers import Timer, Timers

ATTACHES_AT_ONCE = 32
_TURN_S = 0.001
"""The least time between two turns; the node serves its other inputs in between."""


class AttachingRoute(Protocol):
    """A link route that waits for its turn: ``attach`` does nothing if the route has ended meanwhile."""

    def attach(self) -> None: ...


class AttachTurns:
    """Lets 32 routes attach again at one moment, and the others in the order in which they came, 32 a millisecond."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: dict[AttachingRoute, None] = {}
        self._timer: Timer | None = None
        self._moment = -1.0
        self._count = 0
        """Number of routes that attached at ``_moment``."""

    def take(self, route: AttachingRoute) -> None:
        """Call ``route.attach()`` now, or in its turn; a route that waits already keeps its place."""
        if self._moment != self._timers.now:
            self._moment, self._count = self._timers.now, 0
        if self._waiting or self._count >= ATTACHES_AT_ONCE:
            self._waiting[route] = None
            self._wait()
            return
        self._count += 1
        route.attach()

    def leave(self, route: AttachingRoute) -> None:
        """Give up the turn of ``route``, which has ended."""
        self._waiting.pop(route, None)

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self._timers.after(_TURN_S, self._on_turn)

    def _on_turn(self) -> None:
        self._timer = None
        for route in list(islice(self._waiting, ATTACHES_AT_ONCE)):
            self._waiting.pop(route, None)
            route.attach()
        if self._waiting:
            self._wait()
