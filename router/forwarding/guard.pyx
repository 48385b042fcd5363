"""Check that a client's producer keeps to its credit, message size and pace, and end the link of one that does not.

The engine checks none of the three.

A delivery is checked before each of its pieces goes on, so the end of a message that is too large never reaches a
taker. A producer that leaves a delivery half sent holds up its consumers, so a timer watches the delivery.
"""

from wire.delivery cimport pending_now
from wire.proton cimport pn, pn_delivery_t

from dataclasses import replace

from wire.errors import LinkError

cdef enum:
    # How often the timer looks at a begun delivery within a stall timeout. The guard counts looks without progress, and
    # not the time: a process that was suspended has not read its sockets meanwhile.
    LOOKS = 4


cdef class Guard:
    """The guard of one client's incoming link, which finds breaches of credit, message size and pace. [2.6.7], [2.7.3]

    ``max_message_bytes`` 0: any size. ``tell(error)`` is called with the error of an offence. ``patience``: how long a
    begun delivery may stand still although its sender could go on; None: for ever. When the timer finds an offence, the
    guard calls ``on_offence()`` of the link's owner, which ends the link.
    """

    def __init__(self, IncomingCore link, size_t max_message_bytes, tell, patience=None):
        self.link = link
        self.max_message_bytes = max_message_bytes
        self.tell = tell
        self.patience = patience

    cdef bint has_offended(self) noexcept:
        if self.is_stalled:
            return True
        return self.link.excess_now() > 0 or (self.max_message_bytes and self._size() > self.max_message_bytes)

    cdef int watch(self) except -1:
        """Start the timer that watches the link's begun delivery: the rest has to follow without a long pause."""
        if self.timer is None and self.patience is not None:
            self.still_looks = 0
            self._has_moved()
            self._look_later()
        return 0

    def _look_later(self):
        self.timer = replace(self.patience, seconds=self.patience.seconds / LOOKS).after(self._look)

    def _look(self):
        cdef pn_delivery_t *current
        cdef bint is_begun
        self.timer = None
        if self.link.is_gone or self.link.has_left or self.link.endpoint.is_freed:
            return
        current = self.link.current_now()
        is_begun = current is not NULL and pn.delivery_partial(current) and not pn.delivery_aborted(current)
        if not is_begun and pn.link_queued(self.link.raw) <= 1:
            return
        # A begun delivery behind a complete delivery that waits for a taker blocks nobody, and is not counted as still.
        if self._has_moved() or not is_begun or not self._may_send():
            self.still_looks = 0
        else:
            self.still_looks += 1
        if self.still_looks < LOOKS:
            self._look_later()
            return
        self.is_stalled = True
        if self.link.owner is not None:
            self.link.owner.on_offence()

    cdef bint _has_moved(self) noexcept:
        """True if bytes of the current message came since the last look, or another delivery is current now."""
        cdef size_t size = self._size()
        cdef bint has_moved = self.seen_count != self.link.passed_count or self.seen_bytes != size
        self.seen_count, self.seen_bytes = self.link.passed_count, size
        return has_moved

    cdef bint _may_send(self) noexcept:
        """True if the session's window is certainly open, so that the sender could go on with its delivery. [2.5.6]

        The window counts frames, which may be small: the engine opens the window again once half of its bytes are
        free. Credit is not needed any more: the delivery took its credit when it began.
        """
        return pn.session_incoming_bytes(self.link.session.raw) * 2 <= self.link.session.window_bytes

    cdef size_t _size(self) noexcept:
        """Return how many bytes of the link's current message have arrived, read or not."""
        cdef pn_delivery_t *current = self.link.current_now()
        return 0 if current is NULL else self.link.read_bytes + pending_now(current)

    def offence(self):
        """Return the offence of the link's sender as an error, for the caller to end the link with; None if none.

        The error is passed to ``tell``, too.
        """
        if not self.has_offended():
            return None
        excess = self.link.excess_now()
        if self.is_stalled:
            what = f"a message is incomplete: its sender could send, but sent nothing for {self.patience.seconds:g} s"
            error = LinkError("amqp:link:detach-forced", f"{what} (sender_stall_timeout_s)")
        elif excess > 0:
            error = LinkError("amqp:link:transfer-limit-exceeded", f"the peer sent {excess} deliveries beyond credit")
        else:
            most = self.max_message_bytes
            error = LinkError("amqp:link:message-size-exceeded", f"message too large: expected at most {most} bytes")
        self.tell(error)
        return error
