from router.forwarding.ends cimport Inlet, Taker


cdef int room_of(Inlet inlet) noexcept


cdef class ShortInlets:
    cdef Inlet first
    cdef Inlet last
    cdef readonly int count

    cdef int append(self, Inlet inlet) except -1
    cdef int remove(self, Inlet inlet) except -1


cdef class CreditSharing:
    cdef dict inlets
    cdef object again
    cdef object timers
    cdef ShortInlets short
    # Inlets that got no more than their small share of scarce credit when they were last topped up.
    cdef ShortInlets small
    # Inlets in use, and those that hold more than their float: the period ends with a look at these.
    cdef dict watched
    # Sum of the weights of all inlets that were used recently, and the share of producers in this sum.
    cdef int in_use
    cdef int producers_in_use
    cdef object timer
    # The takers' credit when an inlet was last topped up.
    cdef int credit

    cdef int behind(self, Taker taker) noexcept
    cdef int watch(self, Inlet inlet) except -1
    cdef int offer(self) except -1
    cdef int _offer_to(self, ShortInlets inlets, int most_refused) except -1
    cdef int top_up(self, Inlet inlet, int room) except -1
    cdef int _most(self, Inlet inlet, int room) except? -1
    cdef int _kept(self) noexcept
    cdef int _ration(self, Inlet inlet, int count) except? -1
