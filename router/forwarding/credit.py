"""How is the credit of an address's takers shared among its inlets: floats for all, the rest by recent use.

An inlet that sends gets up to its limit as far as the takers' credit goes; what is scarce is shared evenly among
those in use. Credit that an idle inlet holds while others are short is taken back to its float within ``PERIOD_S``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from router.forwarding.ends import Inlet
from router.timers import Timer, Timers

PERIOD_S = 0.05
FLOAT = 1
"""AMQP cannot signal demand: an inlet without any credit could never say that it has something."""


class CreditSharing:
    """``room(inlet)``: deliveries the takers would take from this inlet beyond all that was promised."""

    def __init__(self, inlets: Iterable[Inlet], room: Callable[[Inlet], int], timers: Timers) -> None:
        self._inlets = inlets
        self._room = room
        self._timers = timers
        self._hungry: dict[Inlet, None] = {}
        self._in_use = 0
        self._seen: dict[Inlet, int] = {}
        self._idle: dict[Inlet, int] = {}
        """Inlets reduced to their float, with the count of deliveries they had then."""
        self._timer: Timer | None = None

    def forget(self, inlet: Inlet) -> None:
        self._hungry.pop(inlet, None)
        self._seen.pop(inlet, None)
        self._idle.pop(inlet, None)

    def top_up(self, inlet: Inlet) -> None:
        """Grant what is worth a flow frame, and the float in any case."""
        if not inlet.link.is_open or inlet.is_draining:
            return
        if self._idle.get(inlet) == inlet.deliveries_in and not inlet.needs_float:
            return
        wanted = inlet.limit - inlet.promised - len(inlet.unsettled)
        room = self._room(inlet)
        count = min(wanted, room)
        if room < wanted:
            count = self._ration(inlet, count)
        # By the half: a flow frame for each delivery would double the frames.
        if count > 0 and count >= inlet.promised:
            inlet.top_up(count)
        elif inlet.needs_float:
            inlet.top_up(FLOAT)

    def _ration(self, inlet: Inlet, count: int) -> int:
        others = [other for other in self._inlets if other is not inlet]
        if not others:
            return count
        self._hungry[inlet] = None
        if self._timer is None:
            self._timer = self._timers.after(PERIOD_S, self._on_period)
        in_use = self._in_use or len(others) + 1
        return max(min(count, 1), count // in_use)

    def _on_period(self) -> None:
        """Take back what idle inlets hold, and serve those that were short."""
        self._timer = None
        in_use = 0
        for inlet in self._inlets:
            was_used = inlet.deliveries_in != self._seen.get(inlet, -1) or inlet.link.queued > 0
            self._seen[inlet] = inlet.deliveries_in
            in_use += was_used
            if not was_used and inlet.promised >= FLOAT and inlet.link.is_open and not inlet.is_draining:
                self._idle[inlet] = inlet.deliveries_in
                inlet.reduce(FLOAT)
        self._in_use = max(in_use, 1)
        hungry, self._hungry = self._hungry, {}
        for inlet in hungry:
            self.top_up(inlet)
