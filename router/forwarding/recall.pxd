from router.forwarding.address cimport AddressGroup
from router.forwarding.ends cimport Taker


cdef class Recalls:
    cdef AddressGroup group
    cdef object timers
    cdef double patience_s
    cdef object timer
    cdef dict seen

    cdef int watch(self) except -1
    cdef int _demand_but_of(self, Taker taker) except -1
