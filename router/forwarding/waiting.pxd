from router.forwarding.ends cimport Inlet


cdef class WaitingInlets:
    # Inlet -> its level, or NEW before it is ranked.
    cdef dict levels
    # The inlets that are not ranked yet, in order of arrival.
    cdef dict new
    # For each level, its inlets in order of their turns, an OrderedDict; None for a level without inlets so far.
    cdef list queues
    # Inlets that may go on though no taker has credit: those from routers, which may have barriers at their heads, and
    # those with a begun delivery.
    cdef dict eager

    cdef int add(self, Inlet inlet) except -1
    cdef int discard(self, Inlet inlet) except -1
    cdef int note_begun(self, Inlet inlet) except -1
    cdef int rank_new(self) except -1
    cdef int put(self, Inlet inlet, bint is_first) except -1
    cdef int _enqueue(self, Inlet inlet, int level, bint is_first) except -1
    cdef int level_now(self) except -2
    cdef Inlet take_at(self, int level)
    cdef Inlet take_only(self)
