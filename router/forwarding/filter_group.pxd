from router.forwarding.ends cimport Inlet, Taker
from router.forwarding.multicast cimport Multicast


cdef class MatchedMulticast(Multicast):
    # The filter whose consumers have the least credit for the delivery at which `credit_for` looked last; None if
    # another taker has less.
    cdef FilterGroup tightest

    cdef bint has_filter_takers(self) noexcept
    cdef int on_filter_taken(self) except -1
    cdef int on_filter_left(self) except -1


cdef class FilterGroup(Multicast):
    # The groups of the addresses in use that the filter matches.
    cdef dict members
    # The inlets of all members; the sharing of credit among them is this group's ``sharing``.
    cdef dict senders
    # Members in which a delivery waits for a consumer of the filter, the longest waiting first: an OrderedDict.
    cdef object blocked
    cdef bint has_freed_soon

    cdef int room(self) noexcept
    cdef bint is_free(self) noexcept
    cdef int admit(self, MatchedMulticast member) except -1
    cdef int dismiss(self, MatchedMulticast member) except -1
    cdef int add_sender(self, Inlet inlet) except -1
    cdef int forget_sender(self, Inlet inlet) except -1
    cdef int _kick_blocked(self) except -1
