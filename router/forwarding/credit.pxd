from router.forwarding.ends cimport Inlet


cdef int room_of(Inlet inlet) noexcept


cdef class CreditSharing:
    cdef dict inlets
    cdef object again
    cdef object timers
    cdef dict hungry
    cdef int in_use
    cdef object timer

    cdef int top_up(self, Inlet inlet, int room) except -1
    cdef int _ration(self, Inlet inlet, int count) except? -1
