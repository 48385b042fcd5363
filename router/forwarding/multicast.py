"""Every taker gets a copy: local consumers, and one circuit per branch of the tree.

Producers are held back by the slowest taker; one without credit for ``stall_timeout_s`` is left out until it grants.
"""

from __future__ import annotations

from collections.abc import Callable

from router.forwarding.address import AddressGroup, ForwardingSettings, GroupOwner
from router.forwarding.ends import CHUNK_BYTES, Inlet, Taker
from router.forwarding.fan import Copy, Fan
from router.timers import Timers
from wire import delivery as deliveries

_PRESETTLED_PATIENCE_S = 0.1
"""Pre-settled copies are not worth waiting for; this much only absorbs the float of several producers."""


class Multicast(AddressGroup):
    """One address, one copy for each taker. Inlets that are circuits feed the branches of their own tree only."""

    treatment = "multicast"

    def __init__(
        self, address: str, phase: int, timers: Timers, settings: ForwardingSettings, owner: GroupOwner
    ) -> None:
        super().__init__(address, phase, timers, settings, owner)
        self.open_streams: Callable[[Inlet], list[Taker]] = lambda inlet: []
        """Asked for the branches of an inlet's large deliveries: opened when first asked for, without credit yet."""

    def takers_of(self, inlet: Inlet) -> list[Taker]:
        """Local consumers, and the branches of the inlet's own tree: a producer's are those with no upstream."""
        return [
            taker
            for taker in self.takers
            if not taker.is_closing
            and not taker.is_stream
            and (taker.upstream is inlet or (taker.upstream is None and (taker.cost == 0 or not inlet.is_circuit)))
        ]

    def _takers_for(self, inlet: Inlet, *, is_large: bool) -> list[Taker] | None:
        """A large delivery takes branches of its own, so that it stops nobody else; None until they are there."""
        takers = self.takers_of(inlet)
        shared = [taker for taker in takers if taker.cost > 0]
        if inlet.is_circuit or not shared:
            return takers
        if not inlet.may_stream(is_large):
            return None
        if not is_large:
            return takers
        streams = self.open_streams(inlet)
        if len(streams) < len(shared) or not all(taker.can_take for taker in streams):
            return None
        return [taker for taker in takers if taker.cost == 0] + streams

    def credit_for(self, inlet: Inlet) -> int:
        credits = [taker.credit for taker in self.takers_of(inlet) if not taker.is_stalled]
        return min(credits, default=0) - sum(other.promised for other in self.inlets)

    def step(self, inlet: Inlet) -> bool:
        fan = inlet.moving or self._begin(inlet)
        return fan is not None and fan.advance()

    def _begin(self, inlet: Inlet) -> Fan | None:
        delivery = inlet.head
        if delivery is None:
            return None
        if inlet.is_head_partial(delivery) and deliveries.pending(delivery) < CHUNK_BYTES and not inlet.has_prefix:
            return None
        is_whole = not inlet.is_head_partial(delivery)
        takers = self._takers_for(inlet, is_large=not is_whole)
        if takers is None:
            self._waiting[inlet] = None
            return None
        ready = [taker for taker in takers if taker.can_take]
        late = [taker for taker in takers if not taker.can_take and not taker.is_stalled]
        if late:
            self._waiting[inlet] = None
            for taker in late:
                self._watch(taker, self._patience_s(taker, is_settled=bool(deliveries.is_settled(delivery))))
            return None
        if not takers and not inlet.is_circuit:
            self._waiting[inlet] = None
            return None
        inlet.count_in()
        for taker in takers:
            taker.copies_missed += taker not in ready
        return Fan(inlet, delivery, ready, inlet.take_prefix(), is_whole=is_whole)

    def _patience_s(self, taker: Taker, *, is_settled: bool) -> float:
        if not is_settled:
            return self._settings.stall_timeout_s
        # A branch that was just re-made leads to consumers who were there before: its credit is on the way.
        return _PRESETTLED_PATIENCE_S if taker.had_credit else self._settings.path_wait_s

    def on_blocked(self, taker: Taker) -> None:
        """A started copy waits for room at this taker, and the other copies with it."""
        self._watch(taker, self._settings.stall_timeout_s)

    def _watch(self, taker: Taker, patience_s: float) -> None:
        if taker.stall_timer is None:
            taker.stall_timer = self._timers.after(patience_s, lambda: self._on_stalled(taker))

    def _on_stalled(self, taker: Taker) -> None:
        taker.stall_timer = None
        if taker in self.takers and not taker.can_take:
            copy = taker.moving
            if isinstance(copy, Copy):
                # A copy that waits for its own producer is nobody's fault at the other end.
                if copy.has_progressed() or taker.link.is_writable:
                    self._watch(taker, self._settings.stall_timeout_s)
                    return
                copy.give_up()
            taker.is_stalled = True
            self.kick()
            for inlet in self.inlets:
                self.top_up(inlet)

    def on_credit(self, taker: Taker) -> None:
        if taker.credit > 0:
            taker.is_stalled = False
            if taker.stall_timer is not None:
                taker.stall_timer.cancel()
                taker.stall_timer = None
        super().on_credit(taker)
