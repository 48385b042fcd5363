"""In which order does what was held go on? By the priority in its header; of equals, who waits longest."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from wire.sections cimport priority_of

from heapq import heappop, heappush

cdef enum:
    # Ten levels, 0 to 9: what is above is the highest. [3.2.1]
    HIGHEST_LEVEL = 9


cdef int level_of(bytes message) noexcept:
    return min(priority_of(<const unsigned char *>PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message)), HIGHEST_LEVEL)


cdef class Turns:
    def __cinit__(self):
        self.heap = []

    cdef int add(self, object who, int level) except -1:
        """Behind all others of this level."""
        self.last += 1
        heappush(self.heap, (-level, self.last, who))
        return 0

    cdef object next(self):
        """None when there is nobody left."""
        return heappop(self.heap)[2] if self.heap else None
