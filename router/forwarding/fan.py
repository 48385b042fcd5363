"""One delivery on its way to many takers: multicast.

A chunk is read only when every taker under way has room for it: memory is bounded by one chunk, and the slowest sets
the pace; a taker that stands still is left out by its group's stall timer.
"""

from __future__ import annotations

from collections.abc import Iterable

from router.forwarding.ends import CHUNK_BYTES, Inlet, Taker
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Kind, Outcome
from wire.engine import Pointer

_RANK = {Kind.RELEASED: 0, Kind.MODIFIED: 1, Kind.ACCEPTED: 2, Kind.REJECTED: 3}


class Copy:
    """The outgoing delivery of a fan at one taker."""

    __slots__ = ("fan", "has_left", "looked_bytes", "outgoing", "sent_bytes", "taker")

    def __init__(self, fan: Fan, taker: Taker) -> None:
        self.fan = fan
        self.taker = taker
        self.has_left = False
        self.sent_bytes = 0
        self.looked_bytes = 0
        self.outgoing: Pointer = taker.link.start(taker.next_tag())
        taker.credit -= 1
        taker.moving = self
        taker.unsettled[self.outgoing] = self

    def send(self, chunk: bytes) -> None:
        self.taker.link.send(chunk)
        self.sent_bytes += len(chunk)

    def has_progressed(self) -> bool:
        """Bytes went out since this was last asked."""
        before, self.looked_bytes = self.looked_bytes, self.sent_bytes
        return self.sent_bytes > before

    def give_up(self) -> None:
        """It stands still: the others go on without it."""
        self.abort()
        self.fan.on_copy_done(self, MODIFIED_FAILED)

    def finish(self, is_settled: bool) -> None:
        self.taker.link.finish()
        self.taker.deliveries_out += 1
        self.taker.moving = None
        self.has_left = True
        if is_settled:
            self.forget()
            self.fan.on_copy_done(self, ACCEPTED)

    def abort(self) -> None:
        self.taker.unsettled.pop(self.outgoing, None)
        self.taker.moving = None
        self.taker.link.abort(self.outgoing)
        self.taker.sync_credit()

    def forget(self) -> None:
        self.taker.unsettled.pop(self.outgoing, None)
        deliveries.settle(self.outgoing)
        self.taker.link.endpoint.mark_dirty()

    def on_taker_disposition(self, delivery: Pointer) -> None:
        outcome = deliveries.remote_outcome(delivery)
        if not self.has_left:
            if deliveries.is_settled(delivery):
                self.abort()
                self.fan.on_copy_done(self, outcome or RELEASED)
        elif outcome is not None or deliveries.is_settled(delivery):
            self.forget()
            self.fan.on_copy_done(self, outcome or ACCEPTED)

    def on_sender_disposition(self, delivery: Pointer) -> None:
        """Senders settle the incoming delivery, which belongs to the fan."""

    def on_taker_lost(self) -> None:
        self.fan.on_copy_done(self, MODIFIED_FAILED)


class Fan:
    """One incoming delivery and its copies. [multicast outcome: REJECTED > ACCEPTED > MODIFIED > RELEASED]"""

    __slots__ = ("copies", "incoming", "inlet", "is_done", "is_read", "outcome", "prefix")

    def __init__(
        self,
        inlet: Inlet,
        incoming: Pointer,
        takers: Iterable[Taker],
        prefix: bytes | None = None,
        *,
        is_whole: bool = True,
    ) -> None:
        self.inlet: Inlet | None = inlet
        self.incoming = incoming
        self.outcome = RELEASED
        self.prefix = prefix
        self.is_read = prefix is not None and is_whole
        self.is_done = False
        self.copies = {Copy(self, taker): None for taker in takers}
        inlet.unsettled[incoming] = self
        if not self.is_read:
            inlet.moving = self

    @property
    def is_far(self) -> bool:
        return bool(self.copies)

    def advance(self) -> bool:
        """Copy what can be copied. True when the incoming link is free for its next delivery."""
        inlet = self.inlet
        if inlet is None:
            return True
        while True:
            blocked = next((copy for copy in self.copies if not copy.taker.link.is_writable), None)
            if blocked is not None:
                blocked.taker.link.endpoint.wait_for_room(self if self.is_read else inlet)
                inlet.group.on_blocked(blocked.taker)
                return self.is_read
            chunk = self.prefix or self._read(inlet)
            self.prefix = None
            if chunk:
                for copy in self.copies:
                    copy.send(chunk)
            elif not self.is_read and deliveries.is_aborted(self.incoming):
                self._abort(inlet)
                return True
            elif not self.is_read and deliveries.is_partial(self.incoming):
                return False
            else:
                self._complete(inlet)
                return True

    def on_writable(self) -> None:
        """Only for a message that was read before: its inlet has gone on to others."""
        if not self.is_done:
            self.advance()

    def _read(self, inlet: Inlet) -> bytes:
        size = 0 if self.is_read else deliveries.pending(self.incoming)
        return inlet.link.recv(min(size, CHUNK_BYTES)) if size else b""

    def _complete(self, inlet: Inlet) -> None:
        is_settled = deliveries.is_settled(self.incoming)
        self._end(inlet)
        for copy in list(self.copies):
            copy.finish(is_settled or copy.taker.presettles)
        self._settle_if_done()

    def _abort(self, inlet: Inlet) -> None:
        for copy in self.copies:
            copy.abort()
        self.copies.clear()
        self._end(inlet)
        self._settle_if_done()

    def _end(self, inlet: Inlet) -> None:
        if not self.is_read:
            inlet.pop()
        self.is_done = True

    def on_copy_done(self, copy: Copy, outcome: Outcome) -> None:
        if self.copies.pop(copy, self) is self:
            return
        if _RANK[outcome.kind] > _RANK[self.outcome.kind]:
            self.outcome = outcome
        if self.is_done:
            self._settle_if_done()
        elif self.is_read:
            self.advance()
        elif self.inlet is not None:
            self.inlet.on_writable()

    def _settle_if_done(self) -> None:
        inlet = self.inlet
        if inlet is None or self.copies:
            return
        if not deliveries.is_settled(self.incoming):
            deliveries.set_outcome(self.incoming, self.outcome)
        inlet.unsettled.pop(self.incoming, None)
        deliveries.settle(self.incoming)
        inlet.link.endpoint.mark_dirty()
        self.inlet = self.incoming = None
        inlet.group.on_returned(inlet)

    def on_sender_disposition(self, delivery: Pointer) -> None:
        """The producer settled first: it wants no outcome; the copies go on."""
        if self.is_done and deliveries.is_settled(delivery) and self.inlet is not None:
            inlet, self.inlet = self.inlet, None
            inlet.unsettled.pop(self.incoming, None)
            deliveries.settle(self.incoming)
            inlet.group.on_returned(inlet)

    def on_inlet_lost(self) -> None:
        self.inlet = self.incoming = None
        if not self.is_done:
            for copy in self.copies:
                copy.abort()
            self.copies.clear()
