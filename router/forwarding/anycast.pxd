from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport Carrier, Inlet, Taker
from router.forwarding.move cimport Copies, Move


cdef class Anycast(AddressGroup):
    cdef readonly bint is_closest
    cdef public object open_stream
    cdef Copies copies
    cdef dict retries
    cdef unsigned long long turn

    cdef bint has_local(self) noexcept
    cdef Move begin(self, Inlet inlet)
    cdef Taker choose(self, Inlet inlet, bint is_large)
    cdef Taker best_of(self, bint locals_only, list tried)
    cdef bint has_untried(self, list tried)
    cdef Taker another_for(self, Move move)
    cdef bint has_another_for(self, Move move)
    cdef int go_on_with_retries(self) except -1
