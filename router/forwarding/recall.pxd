from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport Taker
from router.forwarding.move cimport Move


cdef class Recalls:
    cdef AddressGroup group
    cdef object timers
    cdef double patience_s
    cdef bint is_strict
    cdef object timer
    # The state of each circuit with outstanding deliveries, at the last check.
    cdef dict seen

    cdef int watch(self) except -1
    cdef int _recall(self, Taker taker) except -1
    cdef list _others_than(self, Taker taker)


cdef int ask_back(Move move) except -1
