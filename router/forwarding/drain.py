"""A consumer's drain: before the drain is answered, ask all inlets (incoming links) that may have a delivery for the
consumer to use their credit or give it back. Spec: [2.6.7].

The brokers of a sharded queue are asked in turn, because credit offered to two brokers at once may bring two messages
where the consumer takes one. A new consumer may drain before the links to all brokers are there: the drain waits for
the links, but at most ``path_wait_s``. Producers and circuits of an anycast address that hold credit are asked all at
once, since a transfer of theirs may be on the wire. After a fraction of a second without an answer, their credit is
taken back.
"""

from __future__ import annotations

from typing import Protocol

from router.forwarding.ends import Inlet, Taker
from router.timers import Timers

PRODUCERS_WAIT_S = 0.2
"""How long a consumer's drain waits for producers and circuits to answer, before their credit is taken back."""
_EDGE_WAIT_S = 0.15
_CIRCUIT_WAIT_S = 0.1
"""How long a drain by a router waits, over a circuit: less than at the consumer's router, to answer it in time."""


class DrainedGroup(Protocol):
    """The members of an address's group (its inlets and takers at one router) that drains use."""

    phase: int
    inlets: dict[Inlet, None]

    @property
    def asks_producers(self) -> bool: ...

    def on_drained(self) -> None: ...


class DrainedGroupOwner(Protocol):
    """The methods of a group's owner that drains use."""

    def is_complete(self, group: DrainedGroup, is_circuit: bool) -> bool:
        """True if a link from each broker of a sharded queue is there, so that a drain need not wait for more links.

        For a consumer here, a link from each broker in reach counts; if ``is_circuit``, for a consumer at another
        router, only from brokers that are connected to this router.
        """
        ...


class Drains:
    """The drains under way at one address, one for each draining consumer. The group is told when a drain ends."""

    def __init__(self, group: DrainedGroup, timers: Timers, path_wait_s: float, owner: DrainedGroupOwner) -> None:
        self._group = group
        self._timers = timers
        self._path_wait_s = path_wait_s
        self._owner = owner
        self._drains: dict[Taker, Drain | ProducersDrain] = {}
        self._asked: dict[Inlet, int] = {}
        """Producers and circuits of an anycast that have yet to answer -> number of their deliveries when asked."""

    def __len__(self) -> int:
        return len(self._drains)

    def begin(self, taker: Taker) -> None:
        """Begin the drain that the consumer of ``taker`` asked for; no effect if a drain of this taker is under way."""
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

    # Methods about the producers and circuits of an anycast
    def _ask(self, taker: Taker) -> list[Inlet]:
        """Ask the producers and circuits that hold credit and may feed ``taker`` to drain; return those yet to answer.

        The link from a fallback queue is not asked to drain: `router.fallback.queue_share` drains the link itself.
        """
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
        """True if the inlet was not asked to drain, or has answered and none of its deliveries waits.

        A router that used its credit is asked again, for ``more`` deliveries, the consumer's credit.
        """
        if inlet not in self._asked:
            return True
        if inlet.link.is_open and (inlet.link.credit > 0 or inlet.is_waiting):
            return False
        is_from_router = inlet.is_circuit or inlet.is_edge
        if inlet.link.is_open and is_from_router and inlet.deliveries_in != self._asked[inlet]:
            # The router used its credit for deliveries, and may have messages of other producers: it is asked again.
            self._ask_for(inlet, more)
            return False
        self._stop_asking(inlet)
        return True

    def take_back(self, inlet: Inlet) -> None:
        """Take back the credit of ``inlet``, which was asked to drain and did not answer in time."""
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
        """Return the inlets that the drain of ``taker`` at a sharded queue asks to drain.

        These are the links from brokers, and circuits if ``taker`` is near (at this router, or an edge router of it).
        For an address without stored messages, phase 0, return none: `ProducersDrain` asks there.
        """
        if self._group.phase == 0:
            return []
        # A stream, a circuit for large deliveries, is not asked to drain: a drain of the shared circuit beside it is
        # for both.
        inlets = [inlet for inlet in self._group.inlets if not inlet.is_stream]
        return [inlet for inlet in inlets if taker.is_near or not inlet.is_circuit]

    def is_complete_for(self, taker: Taker) -> bool:
        """True if no link that may feed ``taker`` is missing, and no delivery waits on a link for large deliveries.

        Always True for an address without stored messages.
        """
        if self._group.phase == 0:
            return True
        are_streams_empty = not any(inlet.is_stream and inlet.is_waiting for inlet in self._group.inlets)
        return are_streams_empty and self._owner.is_complete(self._group, not taker.is_near)

    def on_over(self, taker: Taker) -> None:
        """Forget the drain of ``taker``, which is over: its credit was used up or given back, or the taker left."""
        self._drains.pop(taker, None)
        if not self._drains:
            for inlet in list(self._asked):
                self._stop_asking(inlet)
        self._group.on_drained()
        self.look()

    def look(self) -> None:
        """Let all drains under way go on if they can, since a condition that they may wait for has changed."""
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
    """The drain of one consumer of a sharded queue: asks the links from brokers to drain, one after the other.

    An inlet is asked by one drain at a time; when the inlet is free again, ``drains`` lets the other drains go on.
    """

    def __init__(self, taker: Taker, drains: Drains) -> None:
        self.taker = taker
        self._drains = drains
        self._asked: set[Inlet] = set()
        self._current: Inlet | None = None
        self._waits_for_more = True
        self._is_over = False

    def go_on(self) -> None:
        """Ask the next inlet, as long as the consumer's credit lasts; answer the drain when no inlet is left to ask."""
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
        """Ask the next inlet that no other drain asks now.

        Return True if the drain is not over: an inlet is still to be asked, or a link from a broker that is not there
        yet is waited for.
        """
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
        """Go on with the drain if ``inlet`` is the one asked: a delivery came from it, or its credit came back."""
        if inlet is self._current:
            self.look()

    def look(self) -> None:
        """Go on with the drain, unless the inlet that is asked still holds credit, or deliveries of it wait."""
        inlet = self._current
        if self._is_over or (inlet is not None and (inlet.link.credit > 0 or inlet.is_waiting)):
            return
        self.go_on()

    def stop_waiting(self) -> None:
        """Wait no longer for links from brokers that are not there by now, and go on with the drain."""
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
        """Stop asking the inlet that is asked now to drain; True if there was one."""
        inlet, self._current = self._current, None
        if inlet is not None:
            inlet.is_draining = False
            inlet.hear_credit()
            if not inlet.link.is_gone:
                inlet.link.end_drain()
        return inlet is not None


class ProducersDrain:
    """The drain of one consumer, or circuit, at an anycast address: asks all producers and circuits to drain, at once.

    ``asked``: the inlets whose answer is awaited.
    """

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
        """Answer the taker's drain if each inlet in ``asked`` has answered; else wait on."""
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
        """Take back the credit of inlets that did not answer in time, and answer the taker's drain.

        The peers of these inlets may not support drain.
        """
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
