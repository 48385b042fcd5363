"""A consumer's drain: who may have something for the consumer, and is asked before the answer? Spec: [2.6.7].

The brokers of a sharded queue are asked in turn, because credit offered to two at once may bring two messages where
the consumer takes one. A consumer that has just come may drain before the links to all brokers are there: it waits for
those, but not for ever. Producers of an anycast, and circuits, are asked all at once, if they hold credit: a transfer
of theirs may be on the wire. They have little time to answer; then their credit is taken back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.forwarding.ends import Inlet, Taker

if TYPE_CHECKING:
    from router.forwarding.address import AddressGroup, GroupOwner
    from router.timers import Timers


PRODUCERS_WAIT_S = 0.2
"""How long a client's drain waits for producers."""
_EDGE_WAIT_S = 0.15
_CIRCUIT_WAIT_S = 0.1
"""Less at each router further on, so that its answer comes in time."""


class Drains:
    """Those under way at one address, one for each consumer that asked. The group hears of each that is over."""

    def __init__(self, group: AddressGroup, timers: Timers, path_wait_s: float, owner: GroupOwner) -> None:
        self._group = group
        self._timers = timers
        self._path_wait_s = path_wait_s
        self._owner = owner
        self._drains: dict[Taker, Drain | ProducersDrain] = {}
        self._asked: dict[Inlet, int] = {}
        """Producers and circuits of an anycast that did not answer yet: what each had sent when it was asked."""

    def __len__(self) -> int:
        return len(self._drains)

    def begin(self, taker: Taker) -> None:
        """This consumer has credit that it wants used up or back; nothing new if that is under way."""
        if taker in self._drains:
            return
        wait_s, drain = self._path_wait_s, self._make(taker)
        if isinstance(drain, ProducersDrain):
            wait_s = drain.wait_s
        self._drains[taker] = drain
        drain.go_on()
        if taker in self._drains:
            self._timers.after(wait_s, drain.stop_waiting)

    def _make(self, taker: Taker) -> Drain | ProducersDrain:
        return ProducersDrain(taker, self, self._ask(taker)) if self._group.phase == 0 else Drain(taker, self)

    # Producers and circuits of an anycast
    def _ask(self, taker: Taker) -> list[Inlet]:
        """Those that hold credit for this taker. No broker that feeds a fallback: its keeper asks it."""
        if not self._group.asks_producers or taker.is_closing:
            return []
        found = []
        for inlet in self._group.inlets:
            if not inlet.may_be_drained or not (taker.is_near or not inlet.is_circuit):
                continue
            if inlet not in self._asked and not inlet.is_draining and inlet.link.is_open and inlet.link.credit > 0:
                inlet.is_draining = True
                self._ask_for(inlet, 0)
            if inlet in self._asked:
                found.append(inlet)
        return found

    def _ask_for(self, inlet: Inlet, more: int) -> None:
        self._asked[inlet] = inlet.deliveries_in
        inlet.link.request_drain(more)
        inlet.hear_credit()

    def has_answered(self, inlet: Inlet, more: int) -> bool:
        """It used its credit or gave it back, and nothing that it sent waits. The consumer has credit for ``more``."""
        if inlet not in self._asked:
            return True
        if inlet.link.is_open and (inlet.link.credit > 0 or inlet.is_waiting):
            return False
        is_from_router = inlet.is_circuit or inlet.is_edge
        if inlet.link.is_open and is_from_router and inlet.deliveries_in != self._asked[inlet]:
            # It used its credit: for all that is known, other producers' messages wait there.
            self._ask_for(inlet, more)
            return False
        self._stop_asking(inlet)
        return True

    def take_back(self, inlet: Inlet) -> None:
        """The credit of one that did not answer in time."""
        if inlet in self._asked:
            self._stop_asking(inlet)
            inlet.revoke()

    def _stop_asking(self, inlet: Inlet) -> None:
        self._asked.pop(inlet, None)
        inlet.is_draining = False
        if not inlet.link.is_gone:
            inlet.link.end_drain()
        inlet.hear_credit()

    def offered(self, taker: Taker) -> list[Inlet]:
        """Who is asked, of those that are here: brokers, whose messages it is after. Clients keep their own pace."""
        if self._group.phase == 0:
            return []
        # What comes over a stream was asked for over the circuit beside it.
        inlets = [inlet for inlet in self._group.inlets if not inlet.is_stream]
        return [inlet for inlet in inlets if taker.is_near or not inlet.is_circuit]

    def is_complete_for(self, taker: Taker) -> bool:
        """These are all there will be, and nothing waits beside what they were asked for."""
        if self._group.phase == 0:
            return True
        are_streams_empty = not any(inlet.is_stream and inlet.is_waiting for inlet in self._group.inlets)
        return are_streams_empty and self._owner.is_complete(self._group, not taker.is_near)

    def on_over(self, taker: Taker) -> None:
        """Its credit was used up or given back."""
        self._drains.pop(taker, None)
        if not self._drains:
            for inlet in list(self._asked):
                self._stop_asking(inlet)
        self._group.on_drained()
        self.look()

    def look(self) -> None:
        """Something changed that one of them may wait for."""
        for drain in list(self._drains.values()):
            drain.look()

    def on_progress(self, inlet: Inlet) -> None:
        for drain in list(self._drains.values()):
            drain.on_progress(inlet)

    def on_inlet_left(self, inlet: Inlet) -> None:
        if inlet in self._asked:
            self._stop_asking(inlet)
        for drain in list(self._drains.values()):
            drain.on_left(inlet)
        self.look()

    def on_taker_left(self, taker: Taker) -> None:
        if taker in self._drains:
            self._drains[taker].on_left(taker)


class Drain:
    """One consumer's. An inlet is asked for one at a time: ``drains`` looks again when it may be for another."""

    def __init__(self, taker: Taker, drains: Drains) -> None:
        self.taker = taker
        self._drains = drains
        self._asked: set[Inlet] = set()
        self._current: Inlet | None = None
        self._waits_for_more = True
        self._is_over = False

    def go_on(self) -> None:
        """Ask the next one, as long as the consumer's credit lasts."""
        has_left_one = self._finish_current()
        if self._goes_on_with_next():
            if has_left_one:
                self._drains.look()
            return
        credit = self.taker.link.credit
        if self.taker.is_moving and credit > 0:
            return
        if self.taker.link.is_open and credit > 0:
            self.taker.link.drained()
            self.taker.sync_credit()
        self._end()

    def _goes_on_with_next(self) -> bool:
        """Somebody is asked, or waited for."""
        credit = self.taker.link.credit
        if credit <= 0 or not self.taker.link.is_draining:
            return False
        others = [
            inlet for inlet in self._drains.offered(self.taker) if inlet not in self._asked and inlet.link.is_open
        ]
        free = next((inlet for inlet in others if not inlet.is_draining), None)
        if free is not None:
            self._ask(free, credit)
        return bool(others) or (self._waits_for_more and not self._drains.is_complete_for(self.taker))

    def _ask(self, inlet: Inlet, credit: int) -> None:
        self._asked.add(inlet)
        self._current = inlet
        inlet.is_draining = True
        inlet.link.request_drain(max(0, credit - inlet.link.credit))
        inlet.hear_credit()

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
        self._waits_for_more = False
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
            self._drains.on_over(self.taker)

    def _finish_current(self) -> bool:
        """True when there was one."""
        inlet, self._current = self._current, None
        if inlet is not None:
            inlet.is_draining = False
            inlet.hear_credit()
            if not inlet.link.is_gone:
                inlet.link.end_drain()
        return inlet is not None


class ProducersDrain:
    """One consumer's, or circuit's, at an anycast. ``asked``: whose answers it waits for, until ``stop_waiting``."""

    def __init__(self, taker: Taker, drains: Drains, asked: list[Inlet]) -> None:
        self.taker = taker
        self._drains = drains
        self._asked = asked
        self._is_over = False

    @property
    def wait_s(self) -> float:
        if self.taker.cost == 0:
            return PRODUCERS_WAIT_S
        return _EDGE_WAIT_S if self.taker.edge else _CIRCUIT_WAIT_S

    def go_on(self) -> None:
        """Answer when everybody has."""
        link = self.taker.link
        if self._is_over:
            return
        if link.credit > 0 and link.is_draining:
            self._asked = [inlet for inlet in self._asked if not self._drains.has_answered(inlet, link.credit)]
            if self._asked or self.taker.is_moving:
                return
            if link.is_open:
                link.drained()
                self.taker.sync_credit()
        self._end()

    def look(self) -> None:
        self.go_on()

    def on_progress(self, inlet: Inlet) -> None:
        if inlet in self._asked:
            self.go_on()

    def stop_waiting(self) -> None:
        """Who has not answered by now may not know how to."""
        if self._is_over:
            return
        late, self._asked = self._asked, []
        for inlet in late:
            self._drains.take_back(inlet)
        self.go_on()

    def on_left(self, end: Inlet | Taker) -> None:
        if end is self.taker:
            self._end()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._drains.on_over(self.taker)
