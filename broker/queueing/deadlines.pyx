"""The deadlines of the messages in one queue.

An entry has its own deadline; a pack, which stands for many messages, has the earliest deadline of its messages.
"""

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
        """Add an entry or pack with its deadline ``due_s``, or do nothing if the deadline is infinite."""
        if due_s == INFINITY:
            return 0
        # The serial number orders equal deadlines in the heap, since entries and packs cannot be compared.
        self.serial += 1
        heapq.heappush(self.heap, (due_s, self.serial, each))
        # Archived entries are dropped from time to time: the heap would otherwise keep each until its deadline.
        if len(self.heap) > 2 * self.left_count + SLACK:
            self.heap = [due for due in self.heap if not _is_over(due[2])]
            heapq.heapify(self.heap)
            self.left_count = len(self.heap)
        return 0

    cdef double next_now(self) except? -1:
        """Return the earliest deadline of the queue's messages, in monotonic seconds; infinite when there is none."""
        while self.heap and _is_over((<tuple>self.heap[0])[2]):
            heapq.heappop(self.heap)
        return (<tuple>self.heap[0])[0] if self.heap else INFINITY

    cdef object pop_due(self, double now):
        """Remove and return the entry or pack with the earliest deadline if that has passed by ``now``; else None."""
        return heapq.heappop(self.heap)[2] if self.next_now() <= now else None


cdef bint _is_over(object each) noexcept:
    """Whether the deadline of an entry or pack can be dropped.

    The entry is archived, or was put into a pack, which has a deadline of its own; or the pack was opened for good.
    """
    if type(each) is Pack:
        return (<Pack>each).is_spent
    return (<QueueEntry>each).standing == ARCHIVED or (<QueueEntry>each).standing == PACKED
