"""One inlet stitched to one taker: credit, drain, dispositions and detach pass through unchanged.

Transit circuits and link routes are relays. The taker's credit is the inlet's: nothing is held here but what the
connection's output makes wait.
"""

from __future__ import annotations

from collections.abc import Callable

from router.forwarding.ends import Inlet, Taker
from router.forwarding.guard import Guard
from router.forwarding.move import Move
from wire import delivery as deliveries
from wire.engine import Pointer
from wire.errors import AmqpError
from wire.link import IncomingLink, Link, OutgoingLink

RelayLeft = Callable[[Link, bool, AmqpError | None], None]
Established = Callable[[Link], None]


class Relay:
    """``on_left(end, closed, error)`` is called when either peer leaves; the relay does nothing more then."""

    def __init__(
        self,
        incoming: IncomingLink,
        outgoing: OutgoingLink,
        on_left: RelayLeft,
        established: Established,
        guard: Guard | None = None,
    ) -> None:
        self.inlet = Inlet(incoming, self, limit=0, is_circuit=True, guard=guard)
        self.taker = Taker(outgoing, self)
        self.taker.presettles = False
        self.is_draining = False
        self._senders_before = 0
        self._on_left = on_left
        self._on_established = established

    def pump(self, inlet: Inlet) -> None:
        while inlet.may_go_on and (delivery := inlet.link.current) is not None:
            move = inlet.moving
            if move is None:
                if self.taker.moving is not None or self.taker.is_closing:
                    break
                move = Move(inlet, delivery, self.taker, self._tag(delivery))
                inlet.deliveries_in += 1
            if not move.advance():
                break
        if self.is_draining and not inlet.link.has_left:
            self.on_sender_flow(inlet)

    def on_blocked(self, taker: Taker) -> None:
        """There are no copies here."""

    def _tag(self, delivery: Pointer) -> bytes:
        """The sender's own; one that came in its place may use tags again that the taker still holds. [2.6.12]"""
        if not self._senders_before:
            return deliveries.tag(delivery)
        return b"%d/amqpmesh/%s" % (self._senders_before, self.taker.next_tag())

    def on_moved(self, taker: Taker) -> None:
        """The loop in ``pump`` goes on by itself."""

    def on_returned(self, inlet: Inlet) -> None:
        """Credit is the taker's, not ours to return."""

    def on_credit(self, taker: Taker) -> None:
        incoming = self.inlet.link
        if incoming.is_gone or incoming.has_left or taker.link.is_gone:
            return
        promised = taker.link.credit - incoming.queued
        if taker.link.is_draining and taker.link.credit > 0:
            self.is_draining = True
            incoming.request_drain(max(0, promised - incoming.credit))
        else:
            incoming.set_credit(promised)

    def on_sender_flow(self, inlet: Inlet) -> None:
        """The sender gave its credit back: so do we, once all that it sent before is written."""
        if self.is_draining and inlet.link.credit <= 0 and inlet.link.queued == 0 and inlet.moving is None:
            self.is_draining = False
            inlet.link.end_drain()
            if self.taker.link.is_open:
                self.taker.link.drained()

    def on_inlet_left(self, inlet: Inlet, closed: bool, error: AmqpError | None) -> None:
        self._on_left(inlet.link, closed, error)

    def on_taker_left(self, taker: Taker, closed: bool, error: AmqpError | None) -> None:
        self._on_left(taker.link, closed, error)

    def on_established(self, link: Link) -> None:
        self._on_established(link)
        # What the taker granted while nobody listened, in the same breath as its attach.
        self.on_credit(self.taker)

    def replace(self, link: IncomingLink | OutgoingLink) -> None:
        """Stitch another link in where one was lost; the other end stays with all it holds."""
        if isinstance(link, IncomingLink):
            self._senders_before += 1
            self.inlet = Inlet(link, self, limit=0, is_circuit=True)
        else:
            self.taker = Taker(link, self)
            self.taker.presettles = False
        self.on_credit(self.taker)
        self.pump(self.inlet)
