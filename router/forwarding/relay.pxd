from router.forwarding.ends cimport Group, Inlet, Taker
from wire.proton cimport pn_delivery_t


cdef class Relay(Group):
    cdef readonly Inlet inlet
    cdef readonly Taker taker
    cdef bint is_draining
    cdef int senders_before
    cdef int _rank
    cdef object _patience
    cdef bint _is_transit
    cdef object _timer
    cdef object _on_left
    cdef object _on_established

    cdef int _release(self, bint with_settled) except -1
    cdef pn_delivery_t *_start(self, pn_delivery_t *incoming) except NULL
