from router.forwarding.held_inlet cimport HeldInlet


cdef class SharedCreditInlet(HeldInlet):
    """The inlet of one sender to an anonymous terminus for one of the addresses in its messages."""

    cdef int give_back(self, int most) except -1
    cdef int stuck_now(self) noexcept
    cdef unsigned long long progress_now(self) noexcept


cdef class Stalls:
    cdef int capacity
    cdef dict inlets
    cdef dict seen
    cdef dict stalled
    cdef object timer

    cdef int on_waiting(self, SharedCreditInlet inlet) except -1
    cdef bint has_enough(self, SharedCreditInlet inlet) except -1
    cdef int stop(self) except -1
    cdef int _share(self) except -1
