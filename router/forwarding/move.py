"""One delivery on its way from an inlet to a taker, or to several.

Bytes are copied from delivery to delivery as both sides allow; the message is not looked at. Two rules of the engine
are kept here: an incoming delivery is never settled before its end was read; a partial outgoing one ends by abort.
"""

from __future__ import annotations

from router.forwarding.ends import CHUNK_BYTES, Inlet, Taker
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome
from wire.engine import Pointer


class Move:
    """One incoming delivery and the outgoing one that carries it on."""

    __slots__ = ("has_left", "incoming", "inlet", "is_read", "outcome", "outgoing", "prefix", "taker")

    def __init__(
        self,
        inlet: Inlet,
        incoming: Pointer,
        taker: Taker,
        tag: bytes,
        prefix: bytes | None = None,
        *,
        is_whole: bool = True,
    ) -> None:
        """``prefix``: what was taken off the incoming link already; with ``is_whole`` the whole message."""
        self.inlet: Inlet | None = inlet
        self.incoming = incoming
        self.taker: Taker | None = taker
        self.prefix = prefix
        self.is_read = prefix is not None and is_whole
        self.has_left = False
        self.outcome: Outcome | None = None
        self.outgoing: Pointer = taker.link.start(tag)
        taker.credit -= 1
        taker.moving = self
        taker.unsettled[self.outgoing] = self
        inlet.unsettled[incoming] = self
        if not self.is_read:
            inlet.moving = self

    def advance(self) -> bool:
        """Copy what can be copied. True when the incoming link is free for its next delivery."""
        if self.taker is None:
            return self._discard()
        link = self.taker.link
        while True:
            if not link.is_writable:
                if self.inlet is not None:
                    link.endpoint.wait_for_room(self if self.is_read else self.inlet)
                return self.is_read
            if self.prefix:
                link.send(self.prefix)
                self.prefix = None
            if self.is_read or self._copy_chunk():
                break
            if deliveries.is_aborted(self.incoming):
                self._abort()
                return True
            if deliveries.is_partial(self.incoming) and not deliveries.pending(self.incoming):
                return False
        self._complete()
        return True

    @property
    def is_far(self) -> bool:
        """On a circuit, and not settled."""
        return self.taker is not None and self.taker.cost > 0

    def on_writable(self) -> None:
        """Only for a message that was read before: its inlet has gone on to others."""
        if self.taker is not None and not self.has_left:
            self.advance()

    def _copy_chunk(self) -> bool:
        """Copy one chunk; True at the end of a complete delivery."""
        assert self.inlet is not None
        assert self.taker is not None
        size = deliveries.pending(self.incoming)
        if size:
            self.taker.link.send(self.inlet.link.recv(min(size, CHUNK_BYTES)))
            return False
        return not deliveries.is_partial(self.incoming) and not deliveries.is_aborted(self.incoming)

    def _complete(self) -> None:
        inlet, taker = self.inlet, self.taker
        assert taker is not None
        taker.link.finish()
        self.has_left = True
        taker.moving = None
        taker.deliveries_out += 1
        if inlet is not None and not self.is_read:
            inlet.pop()
        if taker.presettles or (inlet is not None and deliveries.is_settled(self.incoming)):
            self._settle(None if inlet is None or deliveries.is_settled(self.incoming) else ACCEPTED)
        taker.group.on_moved(taker)

    def _settle(self, outcome: Outcome | None) -> None:
        """Forget both sides, telling the sender ``outcome``."""
        taker, inlet = self.taker, self.inlet
        if taker is not None:
            taker.unsettled.pop(self.outgoing, None)
            deliveries.settle(self.outgoing)
            taker.link.endpoint.mark_dirty()
        self.taker = self.outgoing = None
        if inlet is not None:
            self._settle_incoming(inlet, outcome)

    def _settle_incoming(self, inlet: Inlet, outcome: Outcome | None) -> None:
        if outcome is not None:
            deliveries.set_outcome(self.incoming, outcome)
        inlet.unsettled.pop(self.incoming, None)
        deliveries.settle(self.incoming)
        inlet.link.endpoint.mark_dirty()
        self.inlet = self.incoming = None
        inlet.group.on_returned(inlet)

    def _abort(self) -> None:
        """The sender aborted: so do we."""
        inlet, taker = self.inlet, self.taker
        assert inlet is not None
        if taker is not None:
            self._abort_outgoing(taker)
        inlet.pop()
        self._settle_incoming(inlet, None)

    def _abort_outgoing(self, taker: Taker) -> None:
        taker.unsettled.pop(self.outgoing, None)
        taker.link.abort(self.outgoing)
        taker.moving = None
        taker.sync_credit()
        self.taker = self.outgoing = None
        taker.group.on_moved(taker)

    def _discard(self) -> bool:
        """Read to the end of a delivery nobody takes any more, then give its outcome."""
        inlet = self.inlet
        if inlet is None or self.is_read:
            return True
        while size := deliveries.pending(self.incoming):
            inlet.link.recv(min(size, CHUNK_BYTES))
        if deliveries.is_partial(self.incoming) and not deliveries.is_aborted(self.incoming):
            return False
        inlet.pop()
        self._settle_incoming(inlet, self.outcome)
        return True

    # What the two peers say
    def on_taker_disposition(self, delivery: Pointer) -> None:
        """The taker gave a state, perhaps settling: the sender gets both unchanged."""
        is_settled = deliveries.is_settled(delivery)
        if not self.has_left:
            if is_settled:
                self._give_up_partial(deliveries.remote_outcome(delivery) or RELEASED)
            return
        if self.inlet is not None:
            deliveries.copy_disposition(delivery, self.incoming)
            self.inlet.link.endpoint.mark_dirty()
        if is_settled:
            self._settle(None)

    def _give_up_partial(self, outcome: Outcome) -> None:
        """The taker wants no more of a message that is still coming."""
        self.outcome = outcome
        if self.taker is not None:
            self._abort_outgoing(self.taker)
        if self.is_read and self.inlet is not None:
            self._settle_incoming(self.inlet, outcome)
        elif self.inlet is not None:
            self.inlet.on_writable()

    def on_sender_disposition(self, delivery: Pointer) -> None:
        """The sender gave a state or settled, perhaps answering the taker's outcome. [2.6.12]"""
        if not self.has_left or self.taker is None:
            return
        deliveries.copy_disposition(delivery, self.outgoing)
        self.taker.link.endpoint.mark_dirty()
        if deliveries.is_settled(delivery):
            self._settle(None)

    def on_inlet_lost(self) -> None:
        self.inlet = self.incoming = None
        if self.taker is not None and not self.has_left and not self.is_read:
            self._abort_outgoing(self.taker)

    def on_taker_lost(self) -> None:
        """Written or in doubt: the sender gets MODIFIED, delivery-failed."""
        self.taker = self.outgoing = None
        self.outcome = MODIFIED_FAILED
        if self.inlet is None:
            return
        if self.has_left or self.is_read:
            self._settle_incoming(self.inlet, MODIFIED_FAILED)
        else:
            self.inlet.on_writable()
