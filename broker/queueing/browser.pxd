from broker.queueing.message cimport QueueEntry
from broker.queueing.packed cimport Pack


cdef class Browser:
    cdef long consumer_id
    cdef long credit
    # Size limit of the messages shown, 0 for none; size of the first message above the limit, which is not shown, or 0;
    # count of the messages shown.
    cdef size_t most_bytes
    cdef size_t left_out_bytes
    cdef long long shown_count
    cdef object ahead
    cdef Pack viewed
    cdef list left_open

    cdef int expect(self, QueueEntry entry, long long there_count) except -1
    cdef QueueEntry pop(self, double now)
    cdef bint is_dry(self, double now) except -1
    cdef int close_passed(self) except -1
    cdef int leave(self) except -1
    cdef int _open_next(self) except -1
    cdef int _pass_viewed(self) except -1
