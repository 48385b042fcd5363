"""A drain of a consumer whose messages come from several brokers: offered to each in turn, answered when all are dry.

In turn, because credit offered to two at once may bring two messages where the consumer takes one. A consumer that has
just come may drain before the links to all brokers are there: it waits for those, but not for ever. Spec: [2.6.7].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from router.forwarding.ends import Inlet, Taker


class Drain:
    """``done(drain)`` is called once: the taker's credit was used up or given back.

    ``offered`` are the inlets that are there now, ``is_complete`` whether these are all there will be.
    """

    def __init__(
        self,
        taker: Taker,
        offered: Callable[[], Iterable[Inlet]],
        is_complete: Callable[[], bool],
        done: Callable[[Drain], None],
    ) -> None:
        self.taker = taker
        self._offered = offered
        self._is_complete = is_complete
        self._asked: set[Inlet] = set()
        self._current: Inlet | None = None
        self._done = done
        self._is_over = False

    def go_on(self) -> None:
        """Ask the next one, as long as the consumer's credit lasts."""
        self._finish_current()
        credit = self.taker.link.credit
        if credit > 0 and self.taker.link.is_draining:
            inlet = self._next()
            if inlet is not None:
                self._ask(inlet, credit)
                return
            if not self._is_complete():
                return
        if self.taker.link.is_open and credit > 0 and not self.taker.is_moving:
            self.taker.link.drained()
            self.taker.sync_credit()
        self._end()

    def _next(self) -> Inlet | None:
        return next((inlet for inlet in self._offered() if inlet not in self._asked and inlet.link.is_open), None)

    def _ask(self, inlet: Inlet, credit: int) -> None:
        self._asked.add(inlet)
        self._current = inlet
        inlet.is_draining = True
        inlet.link.request_drain(max(0, credit - inlet.link.credit))
        inlet.promised = inlet.link.credit

    def on_progress(self, inlet: Inlet) -> None:
        """Something came from this inlet: a delivery, or its credit back."""
        if inlet is self._current:
            self.look()

    def look(self) -> None:
        """Perhaps what the one that is asked had sent has gone on, or another one came."""
        inlet = self._current
        if self._is_over or (inlet is not None and (inlet.link.credit > 0 or inlet.is_waiting)):
            return
        self.go_on()

    def stop_waiting(self) -> None:
        """Who did not come by now does not come."""
        self._is_complete = lambda: True
        if self._current is None:
            self.look()

    def on_left(self, end: Inlet | Taker) -> None:
        if end is self.taker:
            self._finish_current()
            self._end()
        elif end is self._current:
            self._current = None
            self.go_on()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._done(self)

    def _finish_current(self) -> None:
        inlet, self._current = self._current, None
        if inlet is not None:
            inlet.is_draining = False
            inlet.promised = max(0, inlet.link.credit) if not inlet.link.is_gone else 0
            if not inlet.link.is_gone:
                inlet.link.end_drain()
