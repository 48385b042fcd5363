from router.forwarding.ends cimport Inlet, Taker


cdef int room_of(Inlet inlet) noexcept


cdef class CreditSharing:
    cdef dict inlets
    cdef object again
    cdef object timers
    cdef dict hungry
    # Sum of the weights of all inlets that were used recently, and the share of producers in this sum.
    cdef int in_use
    cdef int producers_in_use
    cdef object timer

    cdef int behind(self, Taker taker) noexcept
    cdef int top_up(self, Inlet inlet, int room) except -1
    cdef int _ration(self, Inlet inlet, int count) except? -1
