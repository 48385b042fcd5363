"""To whom does a delivery go when one taker is enough: balanced over those with credit, or the closest.

balanced: least (outstanding + path cost). closest: least path cost. Ties go round.
"""

from __future__ import annotations

from collections.abc import Callable

from router.forwarding.address import AddressGroup, ForwardingSettings, GroupOwner
from router.forwarding.ends import CHUNK_BYTES, Inlet, Taker
from router.forwarding.move import Move
from router.timers import Timers
from wire import delivery as deliveries
from wire.errors import AmqpError


class Anycast(AddressGroup):
    """One address, one taker a delivery. Inlets that are circuits are served by local takers only: no loops."""

    treatment = "balanced"

    def __init__(
        self,
        address: str,
        phase: int,
        timers: Timers,
        settings: ForwardingSettings,
        owner: GroupOwner,
        *,
        closest: bool = False,
    ) -> None:
        super().__init__(address, phase, timers, settings, owner)
        self.treatment = "closest" if closest else "balanced"
        self.open_stream: Callable[[Taker, Inlet], Taker | None] = lambda taker, inlet: taker
        """Asked when a large delivery would enter a shared circuit: a streaming one, or None until it is up."""

    def credit_for(self, inlet: Inlet) -> int:
        local = sum(taker.credit for taker in self.takers if taker.cost == 0)
        far = sum(taker.credit for taker in self.takers if taker.cost > 0 and not taker.is_stream)
        by_circuits = sum(other.promised for other in self.inlets if other.is_circuit)
        by_producers = sum(other.promised for other in self.inlets if not other.is_circuit)
        if inlet.is_circuit:
            return local - by_circuits - max(0, by_producers - far)
        return local + far - by_circuits - by_producers

    @property
    def _has_local(self) -> bool:
        return any(taker.cost == 0 for taker in self.takers)

    def top_up(self, inlet: Inlet) -> None:
        if not inlet.is_circuit or self._has_local:
            super().top_up(inlet)

    def on_taker_left(self, taker: Taker, closed: bool, error: AmqpError | None) -> None:
        super().on_taker_left(taker, closed, error)
        if not self._has_local:
            self._timers.after(self._settings.path_wait_s, self._give_back)

    def _give_back(self) -> None:
        """What came over circuits for consumers that are gone was never written: their ingress may try elsewhere."""
        if self._has_local:
            return
        for inlet in [inlet for inlet in self.inlets if inlet.is_circuit]:
            inlet.revoke()
            self._waiting.pop(inlet, None)
            self.released += inlet.release_held()

    def step(self, inlet: Inlet) -> bool:
        move = inlet.moving or self._begin(inlet)
        return move is not None and move.advance()

    def _begin(self, inlet: Inlet) -> Move | None:
        while (delivery := inlet.head) is not None and deliveries.is_aborted(delivery):
            inlet.pop()
            inlet.count_in()
            deliveries.settle(delivery)
        if delivery is None:
            return None
        is_large = False
        if inlet.is_head_partial(delivery):
            # A delivery enters a link that others share only when complete, or it would stop them halfway.
            if deliveries.pending(delivery) < CHUNK_BYTES and not inlet.has_prefix:
                return None
            is_large = True
        taker = self.choose(inlet, is_large)
        if taker is None:
            self._waiting[inlet] = None
            return None
        inlet.count_in()
        return Move(inlet, delivery, taker, taker.next_tag(), inlet.take_prefix(), is_whole=not is_large)

    def choose(self, inlet: Inlet, is_large: bool) -> Taker | None:
        best, best_value = None, 0
        for taker in self.takers:
            if not taker.can_take or taker.is_stream or (inlet.is_circuit and taker.cost > 0):
                continue
            value = taker.cost if self.treatment == "closest" else len(taker.unsettled) + taker.cost
            if best is None or value < best_value:
                best, best_value = taker, value
        if best is None:
            return None
        # The next of equals has its turn: the chosen one goes to the end.
        self.takers[best] = self.takers.pop(best)
        if best.cost > 0:
            if not inlet.may_stream(is_large):
                return None
            return self.open_stream(best, inlet) if is_large else best
        return best
