from router.forwarding.ends cimport Inlet


cdef class PendingReturns:
    cdef object timers
    cdef double patience_s
    cdef object on_end
    cdef dict inlets
    cdef object timer

    cdef bint has(self, Inlet inlet) except -1
    cdef int call(self, Inlet inlet) except -1
    cdef bint look(self) except -1
    cdef int _stop_timer(self) except -1
    cdef int forget(self, Inlet inlet) except -1
