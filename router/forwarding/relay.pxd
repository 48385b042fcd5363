from router.forwarding.copies cimport Copies
from router.forwarding.ends cimport Carrier, Group, Inlet, Taker
from wire.proton cimport pn_delivery_t


cdef class Relay(Group):
    cdef readonly Inlet inlet
    cdef readonly Taker taker
    cdef bint is_draining
    # True if the broker sent a message larger than the client's link accepts, so that the message went back.
    cdef bint is_too_small
    cdef int senders_before
    cdef int _rank
    cdef object _patience
    cdef bint _is_transit
    cdef Copies _copies
    cdef object _timer
    cdef tuple _progress
    cdef object _on_left
    cdef object _on_established

    cdef bint _is_for_nobody(self, pn_delivery_t *delivery) noexcept
    cdef int _give_back_soon(self) except -1
    cdef int _release(self) except -1
    cdef Carrier _begin(self, pn_delivery_t *delivery)
    cdef pn_delivery_t *_start(self, pn_delivery_t *incoming) except NULL
