"""Keep a router's circuits of an anycast address: one to each of the cheapest egresses (routers with takers), and
streams beside that circuit.

A stream is a circuit for the deliveries of one inlet that are too large to share a link with other inlets. The spec of
a circuit is in `router.circuits.spec`.
"""

from __future__ import annotations

from router.circuits.circuits import Circuits
from router.circuits.spec import CircuitKind, CircuitSpec
from router.distribution.better_paths import BetterPaths
from router.distribution.changed_addresses import ChangedAddresses
from router.distribution.entries import AddressEntry
from router.distribution.reach import AddressReach
from router.distribution.upkeep import Upkeep
from router.forwarding.ends import Inlet, Taker
from router.routing.spf import Path
from router.timers import Timers
from wire.errors import AmqpError


class AddressCircuits:
    """Makes, replaces and closes the circuits of anycast addresses from this router."""

    def __init__(
        self,
        reach: AddressReach,
        circuits: Circuits,
        upkeep: Upkeep,
        timers: Timers,
        changed: ChangedAddresses,
    ) -> None:
        self._reach = reach
        self._circuits = circuits
        self._upkeep = upkeep
        self.better = BetterPaths(reach.routing, timers, upkeep, changed, self._open_shared)

    def _open_shared(self, entry: AddressEntry, path: Path) -> Taker | None:
        return self.open(entry, CircuitKind.ANYCAST, path, entry.group.phase)

    def settle(self, entry: AddressEntry) -> None:
        """Open the circuits that the entry lacks, and move circuits to cheaper paths.

        Circuits whose egress has no takers, or is not needed, are closed: with a producer here, as soon as no delivery
        on them is unsettled; without one, after 10 s.
        """
        has_producer = entry.has_producer
        wanted = self._reach.ways(entry) if has_producer else {}
        if entry.group.inlets:
            wanted |= self._reach.ways_behind(entry)
        if not wanted and not entry.has_ends:
            return
        self._look_at_left(entry, wanted)
        for egress, taker in list(entry.ends.circuits.items()):
            if egress not in wanted:
                self._upkeep.retire(entry, taker, at_once=has_producer or bool(taker.edge and entry.group.inlets))
        for (egress, _), stream in list(entry.ends.streams.items()):
            if egress not in wanted:
                self._upkeep.retire(entry, stream, at_once=True)
        idle = {} if has_producer else self._idle(entry, wanted)
        self.better.forget_all_but(entry, wanted | idle)
        for egress, path in idle.items():
            # Circuits without a producer move to cheaper paths, too: a later producer would otherwise start on a path
            # that has long not been the cheapest.
            self.better.look(entry, egress, entry.ends.circuits[egress], path)
        for egress, path in wanted.items():
            circuit = entry.ends.circuits.get(egress)
            if circuit is not None:
                self._upkeep.keep(entry, circuit, is_needed=True)
                self.better.look(entry, egress, circuit, path)
            elif self._upkeep.may_try(entry, egress, path):
                self._add(entry, egress, path)

    def _look_at_left(self, entry: AddressEntry, wanted: dict[str, Path]) -> None:
        """Let deliveries no longer wait for earlier ones on replaced circuits whose egress has no takers.

        Such an egress may never grant credit for the barrier that asks about the earlier deliveries.
        """
        if not entry.ends.left:
            return
        takers = self._reach.takers(entry)
        for taker, (egress, _) in list(entry.ends.left.items()):
            if egress not in wanted and egress not in takers:
                del entry.ends.left[taker]
                entry.group.give_up_order_behind(taker)

    def _idle(self, entry: AddressEntry, wanted: dict[str, Path]) -> dict[str, Path]:
        """Return the egresses of the circuits that are not ``wanted`` now, with the cheapest paths to these egresses.

        Circuits that are closing, and egresses out of reach, are left out.
        """
        circuits = entry.ends.circuits.items()
        egresses = [egress for egress, taker in circuits if egress not in wanted and not taker.is_closing]
        return {egress: path for egress in egresses if (path := self._reach.path(egress)) is not None}

    def _add(self, entry: AddressEntry, egress: str, path: tuple[str, ...]) -> None:
        taker = self.better.take(entry, egress) or self._open_shared(entry, path)
        if taker is None:
            self._upkeep.on_refused(entry, egress, None, path)
            return
        entry.ends.circuits[egress] = taker
        entry.group.add_taker(taker)

    def open(self, entry: AddressEntry, kind: CircuitKind, path: tuple[str, ...], phase: int) -> Taker | None:
        """Return a new circuit along ``path``, not in the group yet, whose attach is sent.

        Return None if the circuit cannot be made, for example because its first hop is not connected.
        """
        group = entry.group
        spec = CircuitSpec(
            kind,
            group.address,
            self._reach.router_id,
            phase,
            path,
            user=group.maker or "",
            priority=group.priority,
        )
        try:
            link = self._circuits.sender(spec, path[1])
        except AmqpError:
            return None
        cost = self._reach.routing.cost_to(path[-1]) or 1
        taker = Taker(link, group, cost, is_stream=kind is CircuitKind.STREAM)
        taker.edge = self._reach.edge_number(path[-1])
        taker.egress, taker.path = path[-1], path
        link.open()
        return taker

    def stream(self, entry: AddressEntry, circuit: Taker, inlet: Inlet) -> Taker | None:
        """Return the stream of ``inlet``, for its large deliveries, to the egress of ``circuit``.

        The stream is opened when first asked for. Return None until the stream has credit and is free for the next
        delivery, or if no stream can be made now.
        """
        egress = next((name for name, taker in entry.ends.circuits.items() if taker is circuit), None)
        if egress is None:
            return None
        taker = entry.ends.streams.get((egress, inlet))
        if taker is None:
            path = self._reach.path(egress)
            taker = self.open(entry, CircuitKind.STREAM, path, entry.group.phase) if path else None
            if taker is None:
                return None
            entry.ends.streams[egress, inlet] = taker
            entry.group.add_stream(taker)
        if taker.link.is_open:
            taker.is_closing = False  # The stream may have been about to close: it stays open.
        return taker if taker.can_take else None
