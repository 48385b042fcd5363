"""In which order do the messages of a queue go? The most urgent first, and of those in order of arrival. [3.2.1]"""

from broker.message cimport ARCHIVED, AVAILABLE, Entry

import heapq
from collections import deque
from itertools import islice

cdef enum:
    LEVELS = 10


cdef class Level:
    """Of one priority: what came, and what came back to its place."""

    def __cinit__(self):
        self.fresh = deque()
        self.returned = []

    cdef Entry front(self):
        """Without what was archived meanwhile; None when there is nothing."""
        cdef Entry entry
        while (entry := self.pop()) is not None:
            if entry.standing != ARCHIVED:
                heapq.heappush(self.returned, (entry.position, entry))
                return entry
        return None

    cdef Entry pop(self):
        if not self.returned:
            return self.fresh.popleft() if self.fresh else None
        if self.fresh and (<Entry>self.fresh[0]).position < (<tuple>self.returned[0])[0]:
            return self.fresh.popleft()
        return heapq.heappop(self.returned)[1]

    cdef bint has_for(self, long consumer_id, double now) except -1:
        for _, entry in self.returned:
            if _is_for(entry, consumer_id, now):
                return True
        for entry in self.fresh:
            if _is_for(entry, consumer_id, now):
                return True
        return False


cdef class Line:
    """Entries that wait in a queue.

    Always: each is AVAILABLE or ARCHIVED; the latter are swept when they come to the front
    Always: bit p of ``used`` is set when there is something of priority p
    """

    def __cinit__(self):
        # Most queues know one priority; an empty deque has 600 bytes.
        self.levels = [None] * LEVELS

    cdef int append(self, Entry entry) except -1:
        """It arrived."""
        self._level(entry.message.priority).fresh.append(entry)
        return 0

    cdef int put_back(self, Entry entry) except -1:
        """To its place."""
        heapq.heappush(self._level(entry.message.priority).returned, (entry.position, entry))
        return 0

    cdef Entry pop(self):
        """The next one to go; None when nothing waits."""
        cdef int priority = LEVELS - 1
        cdef Entry entry
        while self.used:
            while not self.used >> priority & 1:
                priority -= 1
            entry = (<Level>self.levels[priority]).pop()
            if entry is None:
                self.used &= ~(1u << priority)
            elif entry.standing != ARCHIVED:
                return entry
        return None

    cdef Entry pop_oldest(self):
        """The one that arrived first, whatever its priority."""
        cdef int priority
        cdef Entry entry, oldest = None
        for priority in range(LEVELS):
            if self.used >> priority & 1:
                entry = (<Level>self.levels[priority]).front()
                if entry is not None and (oldest is None or entry.position < oldest.position):
                    oldest = entry
        return None if oldest is None else (<Level>self.levels[oldest.message.priority]).pop()

    cdef bint has_for(self, long consumer_id, double now) except -1:
        """Something that this consumer could be given."""
        cdef int priority
        for priority in range(LEVELS):
            if self.used >> priority & 1 and (<Level>self.levels[priority]).has_for(consumer_id, now):
                return True
        return False

    cdef list in_order(self):
        """All that are AVAILABLE, as they would go."""
        cdef list found = []
        cdef Level level
        for level in self.levels:
            if level is not None:
                found += [entry for _, entry in level.returned if (<Entry>entry).standing == AVAILABLE]
                found += [entry for entry in level.fresh if (<Entry>entry).standing == AVAILABLE]
        return sorted(found, key=_place_of)

    cdef list first(self, Py_ssize_t count):
        """At least the ``count`` that go first, in no order."""
        cdef list found = []
        cdef Level level
        for level in self.levels:
            if level is not None:
                found += [entry for _, entry in level.returned if (<Entry>entry).standing == AVAILABLE]
                waiting = (entry for entry in level.fresh if (<Entry>entry).standing == AVAILABLE)
                found += islice(waiting, count)
        return found

    cdef Level _level(self, int priority):
        cdef Level level = self.levels[priority]
        if level is None:
            level = self.levels[priority] = Level()
        self.used |= 1u << priority
        return level


cdef bint _is_for(Entry entry, long consumer_id, double now) except -1:
    return entry.standing == AVAILABLE and not entry.is_shunned_by(consumer_id) and not entry.is_past(now)


def _place_of(Entry entry):
    return -entry.message.priority, entry.position
