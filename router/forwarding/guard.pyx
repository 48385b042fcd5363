"""Does a producer keep to what it was promised? The engine checks neither credit nor size, so this does.

A delivery is looked at before each piece of it goes on, so what is too large never reaches its end at a taker.
"""

from wire.delivery cimport pending_now
from wire.proton cimport pn_delivery_t

from wire.errors import LinkError


cdef class Guard:
    """Of one client's incoming link. [2.6.7], [2.7.3]

    ``max_message_bytes`` 0: any size. ``tell`` hears of an offence.
    """

    def __init__(self, IncomingCore link, size_t max_message_bytes, tell):
        self.link = link
        self.max_message_bytes = max_message_bytes
        self.tell = tell

    cdef bint has_offended(self) noexcept:
        return self.link.excess_now() > 0 or (self.max_message_bytes and self._size() > self.max_message_bytes)

    cdef size_t _size(self) noexcept:
        """What is here of the current message, and what was taken of it before."""
        cdef pn_delivery_t *current = self.link.current_now()
        return 0 if current is NULL else self.link.read_bytes + pending_now(current)

    def offence(self):
        """What the peer did that it must not, or None; the caller ends the link with it."""
        if not self.has_offended():
            return None
        excess = self.link.excess_now()
        if excess > 0:
            error = LinkError("amqp:link:transfer-limit-exceeded", f"{excess} deliveries more than there was credit for")
        else:
            most = self.max_message_bytes
            error = LinkError("amqp:link:message-size-exceeded", f"a message of more than the {most} bytes allowed")
        self.tell(error)
        return error
