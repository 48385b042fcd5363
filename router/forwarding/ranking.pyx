"""The takers of an anycast group in the order in which they are chosen, for groups with many takers."""

from router.forwarding.ends cimport Taker


cdef inline bint _is_better(Taker one, Taker other) noexcept:
    """True if ``one`` is chosen before ``other``: by its value, then by the longer time since its last turn."""
    if one.value != other.value:
        return one.value < other.value
    if one.last_turn != other.last_turn:
        return one.last_turn < other.last_turn
    return one.number < other.number


cdef class Ranking:
    """A binary heap of the takers that can take a delivery now, with the best one first.

    A choice among N takers, and each change of a taker, takes O(log N) comparisons. The value of a taker is its path
    cost if ``is_closest``, else the sum of its outstanding deliveries and path cost. Always: ``heap[taker.place] is
    taker`` for each taker in the heap, and ``place`` is -1 for all others.
    """

    def __cinit__(self, bint is_closest):
        self.heap = []
        self.is_closest = is_closest

    cdef int update(self, Taker taker) except -1:
        """Move ``taker`` to the place that its value has now; a taker that can take nothing now is left out."""
        if not taker.can_take_now():
            return self.leave_out(taker)
        taker.value = taker.cost if self.is_closest else taker.unsettled_count + taker.cost
        if taker.place < 0:
            taker.place = len(self.heap)
            self.heap.append(taker)
        self._rise(taker.place)
        return self._sink(taker.place)

    cdef int leave_out(self, Taker taker) except -1:
        """Remove ``taker`` until its next update."""
        cdef Py_ssize_t place = taker.place
        cdef Taker last
        if place < 0:
            return 0
        taker.place = -1
        last = self.heap.pop()
        if last is not taker:
            self.heap[place] = last
            last.place = place
            self._rise(place)
            self._sink(last.place)
        return 0

    cdef int _rise(self, Py_ssize_t place) except -1:
        cdef list heap = self.heap
        cdef Taker taker = heap[place], parent
        cdef Py_ssize_t above
        while place > 0:
            above = (place - 1) >> 1
            parent = heap[above]
            if not _is_better(taker, parent):
                break
            heap[place] = parent
            parent.place = place
            place = above
        heap[place] = taker
        taker.place = place
        return 0

    cdef int _sink(self, Py_ssize_t place) except -1:
        cdef list heap = self.heap
        cdef Taker taker = heap[place], child, other
        cdef Py_ssize_t below, count = len(heap)
        while True:
            below = 2 * place + 1
            if below >= count:
                break
            child = heap[below]
            if below + 1 < count:
                other = heap[below + 1]
                if _is_better(other, child):
                    below += 1
                    child = other
            if not _is_better(child, taker):
                break
            heap[place] = child
            child.place = place
            place = below
        heap[place] = taker
        taker.place = place
        return 0
