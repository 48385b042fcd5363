from router.forwarding.ends cimport Taker


cdef class Ranking:
    # Each taker's `place` is its index in this list; of the takers at 2n + 1 and 2n + 2, none is better than that at n.
    cdef list heap
    cdef bint is_closest

    cdef int update(self, Taker taker) except -1
    cdef int leave_out(self, Taker taker) except -1
    cdef int _rise(self, Py_ssize_t place) except -1
    cdef int _sink(self, Py_ssize_t place) except -1
