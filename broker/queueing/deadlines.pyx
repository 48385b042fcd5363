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
        # The serial breaks ties: entries and packs cannot be compared.
        self.serial += 1
        heapq.heappush(self.heap, (due_s, self.serial, each))
        # Drop archived entries: the heap would otherwise keep an entry until its deadline.
        if len(self.heap) > 2 * self.left_count + SLACK:
            self.heap = [due for due in self.heap if not _is_over(due[2])]
            heapq.heapify(self.heap)
            self.left_count = len(self.heap)
        return 0

    cdef double next_now(self) except? -1:
        """The earliest deadline in the queue, in monotonic seconds; infinite when there is none."""
        while self.heap and _is_over((<tuple>self.heap[0])[2]):
            heapq.heappop(self.heap)
        return (<tuple>self.heap[0])[0] if self.heap else INFINITY

    cdef object pop_due(self, double now):
        """Remove and return the next entry or pack past its deadline; None when there is none."""
        return heapq.heappop(self.heap)[2] if self.next_now() <= now else None


cdef bint _is_over(object each) noexcept:
    """Whether a deadline can be dropped: the entry is archived or in a pack now, or the pack was opened for good."""
    if type(each) is Pack:
        return (<Pack>each).is_spent
    return (<QueueEntry>each).standing == ARCHIVED or (<QueueEntry>each).standing == PACKED
