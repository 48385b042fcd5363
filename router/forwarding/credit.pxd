from router.forwarding.ends cimport Inlet, Taker


cdef int room_of(Inlet inlet) noexcept


cdef class CreditSharing:
    cdef dict inlets
    cdef object again
    cdef object timers
    cdef dict hungry
    # Of the inlets used of late, the sum of their weights; and how many of them are producers.
    cdef int in_use
    cdef int producers_in_use
    cdef object timer

    cdef int behind(self, Taker taker) noexcept
    cdef int top_up(self, Inlet inlet, int room) except -1
    cdef int _ration(self, Inlet inlet, int count) except? -1
