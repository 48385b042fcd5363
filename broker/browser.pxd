from broker.message cimport Entry
from broker.packed cimport Pack


cdef class Browser:
    cdef long consumer_id
    cdef long credit
    # The largest message that it takes; 0: any. Of the first that was larger; and how many it was shown.
    cdef size_t most_bytes
    cdef size_t left_out_bytes
    cdef long long shown_count
    cdef object ahead
    cdef Pack viewed
    cdef list left_open

    cdef int expect(self, Entry entry, long long there_count) except -1
    cdef Entry pop(self, double now)
    cdef bint is_dry(self, double now) except -1
    cdef int close_passed(self) except -1
    cdef int leave(self) except -1
    cdef int _open_next(self) except -1
    cdef int _pass_viewed(self) except -1
