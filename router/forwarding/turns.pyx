"""The order in which held deliveries go on: by the priority in the header, then the longest waiting first."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from wire.sections cimport priority_of


cdef int level_of(bytes message) noexcept:
    return min(priority_of(<const unsigned char *>PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message)), LEVELS - 1)


cdef class Turns:
    """Always: in each level's queue the first ``served`` had their turn; no level above ``highest`` has any left."""

    def __cinit__(self):
        self.queues = [None] * LEVELS
        self.highest = -1

    cdef int add(self, object who, int level) except -1:
        """Add ``who`` behind all others of this level."""
        if self.queues[level] is None:
            self.queues[level] = []
        (<list>self.queues[level]).append(who)
        self.highest = max(self.highest, level)
        return 0

    cdef int add_first(self, object who, int level) except -1:
        """Add ``who`` before all others of this level."""
        if not self.served[level]:
            self.add(who, level)
            (<list>self.queues[level]).insert(0, (<list>self.queues[level]).pop())
            return 0
        self.served[level] -= 1
        (<list>self.queues[level])[self.served[level]] = who
        self.highest = max(self.highest, level)
        return 0

    cdef object next(self):
        """Return the next in turn; None when all had their turn."""
        cdef list queue
        while self.highest >= 0:
            queue = self.queues[self.highest]
            if queue is not None and self.served[self.highest] < <size_t>len(queue):
                self.served[self.highest] += 1
                return queue[self.served[self.highest] - 1]
            self.highest -= 1
        return None
