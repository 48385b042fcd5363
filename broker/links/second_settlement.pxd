cdef class SecondSettlements:
    cdef dict waiting

    cdef int begin(self, SecondSettlement last_word) except -1
    cdef int forget(self, SecondSettlement last_word) except -1


cdef class SecondSettlement:
    cdef SecondSettlements all
    cdef object settle
    # The time of the broker's outcome, for each delivery that its producer has not settled; the oldest first.
    cdef dict given
    cdef bint is_ours

    cdef bint waits_for(self, size_t delivery, double now) except? True
    cdef bint is_given(self, size_t delivery) except? True
    cdef int end(self) except -1
