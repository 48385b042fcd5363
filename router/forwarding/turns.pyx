"""The order in which waiting deliveries go on: by the message priority; inlets of one priority take turns."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from wire.sections cimport priority_of


cdef int level_of(bytes message) noexcept:
    return min(priority_of(<const unsigned char *>PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message)), LEVELS - 1)


cdef class Turns:
    """Inlets and returned deliveries that take turns: a list for each message priority (level), highest level first.

    Always: in each level's list, the first ``served`` had their turn; no level above ``highest`` has one that waits.
    """

    def __cinit__(self):
        self.queues = [None] * LEVELS
        self.highest = -1

    cdef int add(self, object who, int level) except -1:
        """Add ``who``, an inlet or returned delivery, so that its turn comes after all others of ``level``."""
        if self.queues[level] is None:
            self.queues[level] = []
        (<list>self.queues[level]).append(who)
        self.highest = max(self.highest, level)
        return 0

    cdef int add_first(self, object who, int level) except -1:
        """Add ``who``, an inlet or returned delivery, so that its turn comes next of all in ``level``."""
        if not self.served[level]:
            self.add(who, level)
            (<list>self.queues[level]).insert(0, (<list>self.queues[level]).pop())
            return 0
        self.served[level] -= 1
        (<list>self.queues[level])[self.served[level]] = who
        self.highest = max(self.highest, level)
        return 0

    cdef object next(self):
        """Return the inlet or returned delivery whose turn is next; None when all had their turn."""
        cdef list queue
        while self.highest >= 0:
            queue = self.queues[self.highest]
            if queue is not None and self.served[self.highest] < <size_t>len(queue):
                self.served[self.highest] += 1
                return queue[self.served[self.highest] - 1]
            self.highest -= 1
        return None
