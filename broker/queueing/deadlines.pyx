"""The deadlines in a queue: of each entry, and of a pack the earliest deadline of its messages."""

from libc.math cimport INFINITY

from broker.queueing.message cimport ARCHIVED, PACKED, QueueEntry
from broker.queueing.packed cimport Pack

import heapq

cdef enum:
    SLACK = 1000


cdef class Deadlines:
    def __cinit__(self):
        self.heap = []

    cdef int add(self, double due_s, object each) except -1:
        """Add an entry or pack; an infinite deadline is ignored."""
        if due_s == INFINITY:
            return 0
        # The serial breaks ties: entries and packs cannot be compared.
        self.serial += 1
        heapq.heappush(self.heap, (due_s, self.serial, each))
        # Entries archived long before their deadlines would otherwise stay here until then.
        if len(self.heap) > 2 * self.left_count + SLACK:
            self.heap = [due for due in self.heap if not _is_over(due[2])]
            heapq.heapify(self.heap)
            self.left_count = len(self.heap)
        return 0

    cdef double next_now(self) except? -1:
        """The earliest deadline; infinite when there is none."""
        while self.heap and _is_over((<tuple>self.heap[0])[2]):
            heapq.heappop(self.heap)
        return (<tuple>self.heap[0])[0] if self.heap else INFINITY

    cdef object pop_due(self, double now):
        """The next entry or pack past its deadline; None when there is none."""
        return heapq.heappop(self.heap)[2] if self.next_now() <= now else None


cdef bint _is_over(object each) noexcept:
    """Whether the deadline matters no more: a spent pack, or an entry archived or packed."""
    if type(each) is Pack:
        return (<Pack>each).is_spent
    return (<QueueEntry>each).standing == ARCHIVED or (<QueueEntry>each).standing == PACKED
