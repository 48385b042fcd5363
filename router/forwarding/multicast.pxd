from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport Carrier, Inlet, Taker
from router.forwarding.fan cimport Fan
from wire.proton cimport pn_delivery_t


cdef class Multicast(AddressGroup):
    # True once producers here have sent pre-settled deliveries, which have branches of their own.
    cdef readonly bint is_settled_apart
    # True while branches are made anew: producers' deliveries wait for missing branches, but not without end.
    cdef bint is_changing
    cdef double lacks_since_s
    # Bytes that the address of a delivery adds to a copy for the consumer of a filter, at most.
    cdef size_t address_bytes

    cdef list takers_for(self, Inlet inlet, bint is_settled)
    cdef bint holds_up_all(self, Taker taker) noexcept
    cdef int on_late(self, Taker taker) except -1
    cdef bint _may_feed(self, Inlet inlet, Taker taker, bint is_settled) noexcept
    cdef list _takers_now(self, Inlet inlet, bint is_large, bint is_settled)
    cdef Carrier _begin_with(self, Inlet inlet, pn_delivery_t *delivery, list takers, bint is_whole, size_t size)
    cdef bint _shares_takers(self) noexcept
    cdef bint _can_begin(self, Taker taker) noexcept
    cdef int _watch_late(self, Taker taker, bint is_settled) except -1
    cdef size_t _added_bytes(self, Taker taker) noexcept
    cdef Fan _start(self, Inlet inlet, pn_delivery_t *delivery, list takers, bint is_whole, bint may_go_again)
    cdef bint _leaves_out(self, Taker taker, bint is_settled) noexcept
    cdef double _patience_s(self, Taker taker) except -1
    cdef int _watch_settled(self, Taker taker) except -1
    cdef bint _waits_for_others(self, Taker taker) except -1
    cdef bint _holds_up_others(self, Taker taker) except -1
    cdef int _watch(self, Taker taker, double patience_s) except -1
