from router.forwarding.anycast cimport Anycast
from router.forwarding.ends cimport Inlet


cdef class SharedAnycast(Anycast):
    # Inlets of addresses that are set apart, of which this group's circuits may have deliveries.
    cdef dict followers
    # True if a barrier of one of the followers waits for credit.
    cdef bint is_barrier_blocked

    cdef int follow(self, Inlet inlet) except -1
    cdef int unfollow(self, Inlet inlet) except -1
