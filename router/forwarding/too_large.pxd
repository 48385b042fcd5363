from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport Inlet, Taker


cdef class TooLarge:
    cdef AddressGroup group
    cdef object timers
    cdef object settings
    # Consumers that could not have something, and its size.
    cdef dict small
    cdef object timer
    # Brokers' links that something went back over, each with the timer that is to renew it.
    cdef dict renewals

    cdef int note(self, Inlet inlet, size_t size) except -1
    cdef int renew_soon(self, Inlet inlet) except -1
    cdef int _tell(self, Taker taker, size_t size) except -1
    cdef bint _has_queued(self) noexcept
