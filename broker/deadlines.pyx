"""When is something in a queue past its deadline? Of entries each, of a pack the earliest of its messages."""

from libc.math cimport INFINITY

from broker.message cimport ARCHIVED, PACKED, Entry
from broker.packed cimport Pack

import heapq

cdef enum:
    SLACK = 1000


cdef class Deadlines:
    def __cinit__(self):
        self.heap = []

    cdef int add(self, double due_s, object each) except -1:
        """Nothing, when it has none."""
        if due_s == INFINITY:
            return 0
        # What is due at the same time cannot be compared.
        self.serial += 1
        heapq.heappush(self.heap, (due_s, self.serial, each))
        # What is done with long before its deadline would otherwise stay here until it.
        if len(self.heap) > 2 * self.left_count + SLACK:
            self.heap = [due for due in self.heap if not _is_over(due[2])]
            heapq.heapify(self.heap)
            self.left_count = len(self.heap)
        return 0

    cdef double next_now(self) except? -1:
        """Infinite: nothing here has one."""
        while self.heap and _is_over((<tuple>self.heap[0])[2]):
            heapq.heappop(self.heap)
        return (<tuple>self.heap[0])[0] if self.heap else INFINITY

    cdef object pop_due(self, double now):
        """The next entry or pack whose time has come; None when there is none."""
        return heapq.heappop(self.heap)[2] if self.next_now() <= now else None


cdef bint _is_over(object each) noexcept:
    """Nobody needs its deadline any more."""
    if type(each) is Pack:
        return (<Pack>each).is_spent
    return (<Entry>each).standing == ARCHIVED or (<Entry>each).standing == PACKED
