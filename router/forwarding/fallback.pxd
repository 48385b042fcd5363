from router.forwarding.anycast cimport Anycast
from router.forwarding.ends cimport Inlet, Taker
from router.forwarding.pending_returns cimport PendingReturns
from router.forwarding.move cimport Move


cdef class AnycastWithFallback(Anycast):
    cdef readonly Taker fallback
    cdef readonly bint is_falling_back
    # What `_taker_state` was when inlets were excluded; -1 if it was not the same for all of them.
    cdef int excluded_at
    cdef readonly bint is_holding
    cdef readonly dict feeds
    # The fallback queue is in reach, as the owner last said.
    cdef bint has_queue
    cdef dict behind
    cdef bint gives_back
    cdef object gathering
    cdef PendingReturns pending_returns

    cdef bint has_direct(self) noexcept
    cdef bint has_taker(self) noexcept
    cdef bint has_taker_for(self, Inlet inlet)
    cdef int _taker_state(self) noexcept
    cdef bint _lacks_float(self, Inlet inlet) noexcept
    cdef bint is_called_home(self, Inlet inlet) except -1
    cdef int _gather(self) except -1
    cdef bint may_change(self, Inlet inlet) except -1
    cdef Taker fallback_now(self, size_t size)
    cdef bint _is_too_small(self, Taker taker, size_t size) noexcept
    cdef bint is_for_fallback(self, Move move)
