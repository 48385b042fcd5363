"""A circuit's path is not the cheapest any more, since a router is back or an operator changed a cost: who moves it?

A circuit over the better path is made first. When it is up, it takes the place of the other one, and what a producer
sends there comes behind what it has sent before (`router.forwarding.order`). Nothing is lost, and nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable

from router.entries import Better, Entry
from router.forwarding.address import AddressGroup
from router.forwarding.ends import Taker
from router.routing.plane import Plane
from router.routing.spf import Path
from router.timers import Timers
from router.upkeep import Upkeep

STABLE_S = 2.0
"""For so long a path must be the better one: traffic does not follow a connection that comes and goes."""


class BetterPaths:
    """``open(entry, path)`` makes a circuit that nobody sends to yet, or None."""

    def __init__(
        self,
        routing: Plane,
        timers: Timers,
        upkeep: Upkeep,
        look_again: Callable[[AddressGroup], None],
        open_circuit: Callable[[Entry, Path], Taker | None],
    ) -> None:
        self._routing = routing
        self._timers = timers
        self._upkeep = upkeep
        self._look_again = look_again
        self._open = open_circuit

    def look(self, entry: Entry, egress: str, circuit: Taker, path: Path) -> None:
        """``path`` is the cheapest to the egress of ``circuit``."""
        assert circuit.path is not None
        circuit.cost = self._routing.cost_along(circuit.path) or circuit.cost
        better = entry.ends.better.get(egress)
        if circuit.path == path or not self._is_cheaper(path, circuit):
            self._forget(entry, egress)
        elif better is None or better.path != path:
            self._forget(entry, egress)
            entry.ends.better[egress] = Better(path, self._timers.now)
            group = entry.group
            self._timers.after(STABLE_S, lambda: self._look_again(group))
        elif better.circuit is None and self._is_due(better) and self._upkeep.may_try(entry, egress, path):
            better.circuit = self._open(entry, path)

    def _is_due(self, better: Better) -> bool:
        return self._timers.now >= better.since_s + STABLE_S

    def _is_cheaper(self, path: Path, circuit: Taker) -> bool:
        """One whose path broke will be lost, and is none of ours."""
        assert circuit.path is not None
        now, then = self._routing.cost_along(circuit.path), self._routing.cost_along(path)
        return now is not None and then is not None and then < now

    def _forget(self, entry: Entry, egress: str) -> None:
        better = entry.ends.better.pop(egress, None)
        if better is not None and better.circuit is not None:
            better.circuit.on_left(True, None)

    def take(self, entry: Entry, egress: str) -> Taker | None:
        """In place of a circuit that was lost: nothing comes before what is sent there."""
        better = entry.ends.better.pop(egress, None)
        return better.circuit if better is not None else None

    def forget_all_but(self, entry: Entry, egresses: dict[str, Path]) -> None:
        for egress in [egress for egress in entry.ends.better if egress not in egresses]:
            self._forget(entry, egress)

    def on_up(self, entry: Entry, taker: Taker) -> None:
        """It takes the place of the other, if it is still wanted."""
        egress = taker.egress
        better = entry.ends.better.get(egress) if egress is not None else None
        if egress is None or better is None or better.circuit is not taker:
            return
        # One that was lost just now has its place taken by `take`.
        if egress not in entry.ends.circuits:
            return
        del entry.ends.better[egress]
        for left in entry.ends.leave(egress):
            entry.ends.left[left] = (egress, {})
            entry.group.leave_taker(left)
            self._upkeep.leave(entry, left)
        entry.ends.circuits[egress] = taker
        entry.group.add_taker(taker)
