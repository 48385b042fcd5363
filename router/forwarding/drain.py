"""A drain of a consumer whose messages come from several brokers: offered to each in turn, answered when all are dry.

In turn, because credit offered to two at once may bring two messages where the consumer takes one. Spec: [2.6.7].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from router.forwarding.ends import Inlet, Taker


class Drain:
    """``done(drain)`` is called once: the taker's credit was used up or given back."""

    def __init__(self, taker: Taker, inlets: Iterable[Inlet], done: Callable[[Drain], None]) -> None:
        self.taker = taker
        self._left = [inlet for inlet in inlets if inlet.link.is_open]
        self._current: Inlet | None = None
        self._done = done

    def go_on(self) -> None:
        """Ask the next one, as long as the consumer's credit lasts."""
        self._finish_current()
        while self._left:
            credit = self.taker.link.credit
            if credit <= 0 or not self.taker.link.is_draining:
                break
            inlet = self._left.pop()
            if not inlet.link.is_open:
                continue
            self._current = inlet
            inlet.is_draining = True
            inlet.link.request_drain(max(0, credit - inlet.link.credit))
            inlet.promised = inlet.link.credit
            return
        self._left.clear()
        if self.taker.link.is_open and self.taker.link.credit > 0 and not self.taker.is_moving:
            self.taker.link.drained()
            self.taker.sync_credit()
        self._done(self)

    def on_progress(self, inlet: Inlet) -> None:
        """Something came from this inlet: a delivery, or its credit back."""
        if inlet is self._current:
            self.look()

    def look(self) -> None:
        """Perhaps what the one that is asked had sent has gone on."""
        inlet = self._current
        if inlet is not None and inlet.link.credit <= 0 and not inlet.is_waiting:
            self.go_on()

    def on_left(self, end: Inlet | Taker) -> None:
        if end is self.taker:
            self._left.clear()
            self._finish_current()
            self._done(self)
        elif end is self._current:
            self._current = None
            self.go_on()

    def _finish_current(self) -> None:
        inlet, self._current = self._current, None
        if inlet is not None:
            inlet.is_draining = False
            inlet.promised = max(0, inlet.link.credit) if not inlet.link.is_gone else 0
            if not inlet.link.is_gone:
                inlet.link.end_drain()
