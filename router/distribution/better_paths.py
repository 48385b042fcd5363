"""Replace a circuit by one over a cheaper path, after a router came back or an operator changed a cost.

The circuit over the cheaper path is made first, once the path has been cheaper for ``STABLE_S``. When the new circuit
is up, it replaces the old circuit, and a producer's next deliveries go behind those already sent
(`router.forwarding.order`). No delivery is lost or duplicated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from router.distribution.changed_addresses import ChangedAddresses
from router.distribution.entries import AddressEntry, BetterPath
from router.distribution.upkeep import Upkeep
from router.forwarding.ends import Taker
from router.routing.plane import Plane
from router.routing.spf import Path
from router.timers import Timers

STABLE_S = 2.0
"""How long a path must stay the better path before a circuit is made over it, so that traffic does not follow a
connection that comes and goes."""


class BetterPaths:
    """Makes circuits over cheaper paths, and puts each in place of the old circuit once it is up.

    ``open_circuit(entry, path)`` returns a new circuit that is not in the group yet, or None if it cannot be made.
    """

    def __init__(
        self,
        routing: Plane,
        timers: Timers,
        upkeep: Upkeep,
        changed: ChangedAddresses,
        open_circuit: Callable[[AddressEntry, Path], Taker | None],
    ) -> None:
        self._routing = routing
        self._timers = timers
        self._upkeep = upkeep
        self._changed = changed
        self._open = open_circuit

    def look(self, entry: AddressEntry, egress: str, circuit: Taker, path: Path) -> None:
        """Start, go on with or stop replacing ``circuit`` by one along ``path``, the cheapest path to its egress.

        The cost noted at ``circuit`` is brought up to date.
        """
        assert circuit.path is not None
        circuit.set_cost(self._routing.cost_along(circuit.path) or circuit.cost)
        better = entry.ends.better.get(egress)
        if circuit.path == path or not self._is_cheaper(path, circuit):
            self._forget(entry, egress)
        elif better is None or better.path != path:
            self._forget(entry, egress)
            entry.ends.better[egress] = BetterPath(path, self._timers.now)
            self._timers.after(STABLE_S, partial(self._changed.add, entry))
        elif better.circuit is None and self._is_due(better) and self._upkeep.may_try(entry, egress, path):
            better.circuit = self._open(entry, path)

    def _is_due(self, better: BetterPath) -> bool:
        return self._timers.now >= better.since_s + STABLE_S

    def _is_cheaper(self, path: Path, circuit: Taker) -> bool:
        """True if ``path`` costs less now than the path of ``circuit``.

        False if either path is broken. A circuit whose path is broken will be lost anyway and needs no replacement.
        """
        assert circuit.path is not None
        now, then = self._routing.cost_along(circuit.path), self._routing.cost_along(path)
        return now is not None and then is not None and then < now

    def _forget(self, entry: AddressEntry, egress: str) -> None:
        better = entry.ends.better.pop(egress, None)
        if better is not None and better.circuit is not None:
            better.circuit.on_left(True, None)

    def take(self, entry: AddressEntry, egress: str) -> Taker | None:
        """Return the new circuit that was to replace the circuit to ``egress``, which is lost; None if none was made.

        The caller puts the replacement in place. Deliveries over the replacement need not wait for the lost circuit's
        deliveries.
        """
        better = entry.ends.better.pop(egress, None)
        return better.circuit if better is not None else None

    def forget_all_but(self, entry: AddressEntry, egresses: dict[str, Path]) -> None:
        for egress in [egress for egress in entry.ends.better if egress not in egresses]:
            self._forget(entry, egress)

    def on_up(self, entry: AddressEntry, taker: Taker) -> None:
        """Put ``taker``, a new circuit that is up, in place of the old one; do nothing if that is no longer wanted."""
        egress = taker.egress
        better = entry.ends.better.get(egress) if egress is not None else None
        if egress is None or better is None or better.circuit is not taker:
            return
        # If the old circuit was lost just now, there is nothing to replace: the caller of `take` puts the new circuit
        # in place.
        if egress not in entry.ends.circuits:
            return
        del entry.ends.better[egress]
        for left in entry.ends.leave(egress):
            entry.ends.left[left] = (egress, {})
            entry.group.leave_taker(left)
            self._upkeep.leave(entry, left)
        entry.ends.circuits[egress] = taker
        entry.group.add_taker(taker)
