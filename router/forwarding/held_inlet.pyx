"""An inlet for one address of a link that carries messages to many addresses, each named in the field `to`.

The owner of the link reads the messages out of the engine, and the inlet of an address holds those that wait for the
address. So a waiting message holds up no message to another address. The owner grants credit, for all addresses
together.
"""

from cpython.bytes cimport PyBytes_GET_SIZE

from router.forwarding.ends cimport Group, Inlet
from router.forwarding.guard cimport Guard
from router.forwarding.head cimport ReturnMark, returned_at
from router.forwarding.turns cimport USUAL_LEVEL, level_of
from wire.core cimport IncomingCore
from wire.proton cimport pn_delivery_t

from collections import deque


cdef class HeldInlet(Inlet):
    """Base class of the inlets of one link for its addresses: ``held`` has the messages that wait for the address."""

    def __init__(self, IncomingCore link, Group group, int limit, *, bint is_circuit=False, Guard guard=None):
        super().__init__(link, group, limit, is_circuit=is_circuit, guard=guard)
        self.held = deque()
        self.drought.is_on = False

    cdef pn_delivery_t *head_now(self) noexcept:
        return <pn_delivery_t *><size_t>self.held[0][0] if self.held else NULL

    cdef bint needs_float(self) noexcept:
        return False

    cdef int note_credit(self) except -1:
        return 0  # nothing to note: credit is granted to the link, for all addresses together

    cdef int waiting_now(self) noexcept:
        return len(self.held)

    cdef bytes take_prefix(self):
        cdef bytes message = self.held.popleft()[1]
        self.budget.used_bytes -= PyBytes_GET_SIZE(message)
        return message

    cdef int forget_read(self) except -1:
        while self.held:
            self.take_prefix()
        return Inlet.forget_read(self)

    cdef ReturnMark returned_head(self):
        return returned_at(self.held)

    cdef int head_level(self) except -1:
        return level_of(self.held[0][1]) if self.held else USUAL_LEVEL

    cdef int top_up(self, int count) except -1:
        """Grant nothing: the sender gets its credit from the owner of the link, for all addresses together."""
        return 0

    cdef int reduce(self, int count) except -1:
        """Reduce no credit: the sender got its credit from the owner of the link, not for this address."""
        return 0

    def revoke(self):
        """Take back no credit: the sender got its credit from the owner of the link, not for this address."""
