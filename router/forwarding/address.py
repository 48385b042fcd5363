"""What anycast and multicast share: who sends to an address here, who takes from it here, and the credit between them.

Credit is over-committed by a float of one: every inlet with a reachable taker holds at least one credit, since AMQP
cannot signal demand. What arrives without a taker's credit waits unread on its link. Counts are deliveries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from router.forwarding.credit import CreditSharing
from router.forwarding.drain import Drain
from router.forwarding.ends import Inlet, Taker
from router.timers import Timer, Timers
from wire.errors import AmqpError
from wire.link import Link


@dataclass(frozen=True, slots=True)
class ForwardingSettings:
    link_capacity: int = 250
    path_wait_s: float = 2.0
    """How long deliveries are held for a path or taker before they are RELEASED."""
    stall_timeout_s: float = 10.0
    """How long a multicast waits for a taker that stands still."""


@dataclass(frozen=True, slots=True)
class AddressSnapshot:
    address: str
    phase: int
    treatment: str
    inlets: int
    takers: int
    circuits: int
    credit: int
    unsettled: int
    deliveries_in: int
    deliveries_out: int
    released: int


class GroupOwner(Protocol):
    """Who opens circuits, advertises takers, and drops a group that nobody uses."""

    def on_group_changed(self, group: AddressGroup) -> None:
        """An end came or went."""

    def on_end_lost(self, group: AddressGroup, end: Inlet | Taker, error: AmqpError | None) -> None:
        """The peer of this end left, or refused it."""


class AddressGroup:
    """Inlets and takers of one address (and phase) at this router."""

    treatment = ""

    def __init__(
        self, address: str, phase: int, timers: Timers, settings: ForwardingSettings, owner: GroupOwner
    ) -> None:
        self.address = address
        self.phase = phase
        self.inlets: dict[Inlet, None] = {}
        self.takers: dict[Taker, None] = {}
        self.released = 0
        self._waiting: dict[Inlet, None] = {}
        self._timers = timers
        self._settings = settings
        self._owner = owner
        self._despair: Timer | None = None
        self._is_dead = False
        self._deliveries_before = (0, 0)
        self._sharing = CreditSharing(self.inlets, self.credit_for, timers)
        self._drains: dict[Taker, Drain] = {}

    # Ends come and go
    def add_inlet(self, inlet: Inlet) -> None:
        self.inlets[inlet] = None
        self._owner.on_group_changed(self)
        if not self.takers:
            self._despair_later()
        self.top_up(inlet)

    def add_taker(self, taker: Taker) -> None:
        self.takers[taker] = None
        self._is_dead = False
        if self._despair is not None:
            self._despair.cancel()
            self._despair = None
        self._owner.on_group_changed(self)
        self.on_credit(taker)

    def forget_inlet(self, inlet: Inlet) -> None:
        self.inlets.pop(inlet, None)
        self._waiting.pop(inlet, None)
        self._sharing.forget(inlet)
        for drain in list(self._drains.values()):
            drain.on_left(inlet)
        self._count_out(inlet.deliveries_in, 0)
        self._owner.on_group_changed(self)

    def on_inlet_left(self, inlet: Inlet, closed: bool, error: AmqpError | None) -> None:
        self.forget_inlet(inlet)
        self._owner.on_end_lost(self, inlet, error)
        if closed:
            inlet.link.close()
        else:
            inlet.link.detach()

    def on_taker_left(self, taker: Taker, closed: bool, error: AmqpError | None) -> None:
        self.takers.pop(taker, None)
        if taker in self._drains:
            self._drains[taker].on_left(taker)
        self._owner.on_end_lost(self, taker, error)
        self._count_out(0, taker.deliveries_out)
        if closed:
            taker.link.close()
        else:
            taker.link.detach()
        if not self.takers:
            self._despair_later()
        self._owner.on_group_changed(self)
        self.kick()

    def on_established(self, link: Link) -> None:
        """A circuit or broker link of ours is up: a taker's credit comes as flow, an inlet's sender waits for ours."""
        if isinstance(link.owner, Inlet):
            self.top_up(link.owner)

    def _despair_later(self) -> None:
        for inlet in self.inlets:
            inlet.revoke()
        if self._despair is None:
            self._despair = self._timers.after(self._settings.path_wait_s, self.give_up)

    def give_up(self) -> None:
        """No taker came back in time: what is held is released, and so is what crosses the revoked credit."""
        if self._despair is not None:
            self._despair.cancel()
            self._despair = None
        if self.takers:
            return
        self._is_dead = True
        for inlet in list(self.inlets):
            self.pump(inlet)

    # Credit
    def credit_for(self, inlet: Inlet) -> int:
        """Deliveries the takers would take now from this inlet, beyond what was promised already."""
        raise NotImplementedError

    def top_up(self, inlet: Inlet) -> None:
        if self.takers:
            self._sharing.top_up(inlet)

    def on_returned(self, inlet: Inlet) -> None:
        if inlet in self.inlets:
            self.top_up(inlet)
        if inlet in self._waiting:
            self.kick()

    def on_credit(self, taker: Taker) -> None:
        if taker.link.is_draining and taker.link.credit > 0:
            self.kick()
            if taker not in self._drains:
                self._drains[taker] = Drain(taker, self._drained_with(taker), self._on_drained)
                self._drains[taker].go_on()
            return
        self.kick()
        for inlet in self.inlets:
            self.top_up(inlet)

    def _drained_with(self, taker: Taker) -> list[Inlet]:
        """Whom a consumer's drain is offered to: brokers, whose messages it is after. Clients keep their own pace."""
        if self.phase == 0:
            return []
        return [inlet for inlet in self.inlets if taker.cost == 0 or not inlet.is_circuit]

    def _on_drained(self, drain: Drain) -> None:
        self._drains.pop(drain.taker, None)
        for inlet in self.inlets:
            self.top_up(inlet)

    def _tell_drains(self, inlet: Inlet) -> None:
        for drain in list(self._drains.values()):
            drain.on_progress(inlet)

    def on_sender_flow(self, inlet: Inlet) -> None:
        """Of what a sender tells only the answer to a drain matters here."""
        self._tell_drains(inlet)

    # Movement
    def on_blocked(self, taker: Taker) -> None:
        """Only copies wait for each other."""

    def on_moved(self, taker: Taker) -> None:
        if self._waiting:
            self.kick()

    def kick(self) -> None:
        """Let waiting inlets go on, one delivery each in turn, until none can."""
        while self._waiting:
            waiting, self._waiting = self._waiting, {}
            progress = False
            for inlet in waiting:
                if inlet in self.inlets and self._try_step(inlet):
                    progress = True
                    self._waiting.setdefault(inlet)
            if not progress:
                return

    def pump(self, inlet: Inlet) -> None:
        if self._is_dead:
            if inlet.may_go_on:
                self.released += inlet.release_held()
            return
        if self._waiting and inlet not in self._waiting and inlet.moving is None:
            self._waiting[inlet] = None
            self.kick()
            return
        while self._try_step(inlet):
            pass
        if self._drains:
            self._tell_drains(inlet)

    def _try_step(self, inlet: Inlet) -> bool:
        return inlet.may_go_on and self.step(inlet)

    def step(self, inlet: Inlet) -> bool:
        """Move one delivery to its end if possible. Registers the inlet as waiting when a taker is what it lacks."""
        raise NotImplementedError

    def _count_out(self, deliveries_in: int, deliveries_out: int) -> None:
        before_in, before_out = self._deliveries_before
        self._deliveries_before = (before_in + deliveries_in, before_out + deliveries_out)

    def snapshot(self) -> AddressSnapshot:
        before_in, before_out = self._deliveries_before
        return AddressSnapshot(
            address=self.address,
            phase=self.phase,
            treatment=self.treatment,
            inlets=len(self.inlets),
            takers=len(self.takers),
            circuits=sum(taker.cost > 0 for taker in self.takers),
            credit=sum(taker.credit for taker in self.takers),
            unsettled=sum(len(inlet.unsettled) for inlet in self.inlets),
            deliveries_in=before_in + sum(inlet.deliveries_in for inlet in self.inlets),
            deliveries_out=before_out + sum(taker.deliveries_out for taker in self.takers),
            released=self.released,
        )
