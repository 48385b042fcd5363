"""Link routes that wait for a broker: until a path to it appears, or until it answers the attach of another route.

After the loss of a broker with thousands of links, thousands of routes wait. If each tried on its own, a router would
do little else until the broker is back, and the broker would be met by all of them at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from math import inf

from router.routes.attach_turns import ATTACHES_AT_ONCE, AttachingRoute, AttachTurns
from router.routing.spf import Path
from router.timers import Timer, Timers

_RETRY_S = 0.05
_MOST_RETRY_S = 0.2
_RELEASED_BY_ANSWER = 2
"""Number of waiting routes that attach for each attach that the broker answers: with each round trip twice as many."""


class _Waits:
    """The link routes that wait for one broker, in the order in which the routes attach again.

    ``path`` is the path to the broker when the router last looked, while routes wait.
    """

    __slots__ = ("heard_at", "is_path_new", "path", "retry_s", "routes", "timer")

    def __init__(self) -> None:
        self.path: Path | None = None
        self.is_path_new = False
        self.heard_at = -inf
        self.retry_s = _RETRY_S
        self.routes: dict[AttachingRoute, None] = {}
        self.timer: Timer | None = None


class BrokerWaits:
    """The link routes of a router that wait for brokers; ``path_to(broker)`` returns the path now, None for no path.

    Without a path, no route tries. With a path that does not lead to the broker yet, 32 routes try after 0.05 s, the
    next 32 after 0.1 s, and so on every 0.2 s. All take their turns 0.05 s after another path appeared: several routers
    may be connected to the broker, and the nearest is not always the first to say so.
    """

    def __init__(self, timers: Timers, turns: AttachTurns, path_to: Callable[[str], Path | None]) -> None:
        self._timers = timers
        self._turns = turns
        self._path_to = path_to
        self._by_broker: defaultdict[str, _Waits] = defaultdict(_Waits)

    def add(self, broker: str, route: AttachingRoute) -> None:
        """Call ``route.attach()`` once an attach may succeed; a route that waits already keeps its place."""
        waits = self._by_broker[broker]
        if not waits.routes:
            waits.path = self._path_to(broker)
        waits.routes[route] = None
        self._set_timer(waits)

    def discard(self, broker: str, route: AttachingRoute) -> None:
        """Forget ``route``, which has ended; do nothing if it does not wait."""
        waits = self._by_broker[broker]
        waits.routes.pop(route, None)
        self._stop_if_empty(waits)

    def heard_at(self, broker: str) -> float:
        """Return the time of the last good news of ``broker``, -infinity for none so far.

        Good news is an answer, or a path that appeared while routes were waiting.
        """
        return self._by_broker[broker].heard_at

    def on_answered(self, broker: str) -> None:
        """Let two more routes attach, now that ``broker`` has accepted a link."""
        waits = self._by_broker[broker]
        self._hear(waits)
        self._release(waits, _RELEASED_BY_ANSWER)

    def on_paths_changed(self) -> None:
        """Let the routes to each broker attach soon to which there is another path than before."""
        for broker, waits in self._by_broker.items():
            if not waits.routes:
                continue
            before, waits.path = waits.path, self._path_to(broker)
            if waits.path == before:
                continue
            self._stop(waits)
            if waits.path is not None:
                self._hear(waits)
                waits.is_path_new = True
                self._set_timer(waits)

    def _hear(self, waits: _Waits) -> None:
        waits.heard_at = self._timers.now
        waits.retry_s = _RETRY_S

    def _set_timer(self, waits: _Waits) -> None:
        if waits.timer is None and waits.path is not None:
            waits.timer = self._timers.after(waits.retry_s, lambda: self._on_time(waits))
            waits.retry_s = min(2 * waits.retry_s, _MOST_RETRY_S)

    def _on_time(self, waits: _Waits) -> None:
        waits.timer = None
        count = len(waits.routes) if waits.is_path_new else ATTACHES_AT_ONCE
        waits.is_path_new = False
        self._release(waits, count)
        if waits.routes:
            self._set_timer(waits)

    def _release(self, waits: _Waits, count: int) -> None:
        released = list(islice(waits.routes, count))
        for route in released:
            del waits.routes[route]
        # A route whose attach fails at once is added again meanwhile, behind all others.
        for route in released:
            self._turns.take(route)
        self._stop_if_empty(waits)

    def _stop_if_empty(self, waits: _Waits) -> None:
        if not waits.routes:
            self._stop(waits)

    @staticmethod
    def _stop(waits: _Waits) -> None:
        if waits.timer is not None:
            waits.timer.cancel()
            waits.timer = None
