"""The order in which returned deliveries go on: by the message priority."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from wire.sections cimport priority_of


cdef int level_of(bytes message) noexcept:
    return min(priority_of(<const unsigned char *>PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message)), LEVELS - 1)


cdef class Turns:
    """Returned deliveries that take turns: a list for each message priority (level), highest level first.

    Always: in each level's list, the first ``served`` had their turn; no level above ``highest`` has one that waits.
    """

    def __cinit__(self):
        self.queues = [None] * LEVELS
        self.highest = -1

    cdef int add(self, object who, int level) except -1:
        """Add ``who``, a returned delivery, so that its turn comes after all others of ``level``."""
        if self.queues[level] is None:
            self.queues[level] = []
        (<list>self.queues[level]).append(who)
        self.highest = max(self.highest, level)
        return 0

    cdef int level_now(self) noexcept:
        """Return the level of the delivery whose turn is next; -1 when all had their turn."""
        cdef list queue
        while self.highest >= 0:
            queue = self.queues[self.highest]
            if queue is not None and self.served[self.highest] < <size_t>len(queue):
                break
            self.highest -= 1
        return self.highest

    cdef object next(self):
        """Return the delivery whose turn is next; None when all had their turn."""
        cdef int level = self.level_now()
        if level < 0:
            return None
        self.served[level] += 1
        return (<list>self.queues[level])[self.served[level] - 1]
