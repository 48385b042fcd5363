from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport Inlet, Taker


cdef class TooLarge:
    cdef AddressGroup group
    cdef object timers
    cdef object settings
    # For each consumer that could not receive a message, the size of the message in bytes.
    cdef dict small
    cdef object timer
    # For each link from a broker with a returned message, the timer that renews the link.
    cdef dict renewals

    cdef int note(self, Inlet inlet, size_t size) except -1
    cdef int renew_soon(self, Inlet inlet) except -1
    cdef int _tell(self, Taker taker, size_t size) except -1
    cdef bint _has_queued(self) noexcept
