"""The inlets of a group in which a delivery waits for a taker, in the order in which they go on.

The order is kept from one flow of a taker to the next, so that the work of a flow does not grow with the number of
inlets that wait.
"""

from router.forwarding.turns cimport LEVELS

from collections import OrderedDict

cdef enum:
    NEW = -1
    NO_LEVEL = -1


cdef class WaitingInlets:
    """Waiting inlets by the message priority (level) of their heads, and in each level in order of their turns.

    A single waiting inlet is not ranked: the bytes of its head need not be read. Always: an inlet is in ``levels`` if
    and only if it is in ``new`` or in the queue of its level.
    """

    def __cinit__(self):
        self.levels, self.new, self.eager = {}, {}, {}
        self.queues = [None] * LEVELS

    def __len__(self):
        return len(self.levels)

    def __contains__(self, Inlet inlet):
        return inlet in self.levels

    cdef int add(self, Inlet inlet) except -1:
        """Add the inlet behind all others of its level; an inlet that waits already keeps its place."""
        if inlet in self.levels:
            return 0
        self.levels[inlet] = NEW
        self.new[inlet] = None
        if inlet.is_from_node() or inlet.moving is not None or inlet.is_discarding():
            self.eager[inlet] = None
        return 0

    cdef int discard(self, Inlet inlet) except -1:
        level = self.levels.pop(inlet, None)
        if level is None:
            return 0
        if level == NEW:
            del self.new[inlet]
        else:
            del self.queues[level][inlet]
        self.eager.pop(inlet, None)
        return 0

    cdef int note_begun(self, Inlet inlet) except -1:
        """Look at the inlet in each round, if it is here: a delivery of the inlet was begun, and has not ended."""
        if inlet in self.levels:
            self.eager[inlet] = None
        return 0

    cdef int rank_new(self) except -1:
        """Give the inlets that began to wait since the last call their places, by the priority of their heads."""
        cdef Inlet inlet
        if self.new:
            new, self.new = self.new, {}
            for inlet in new:
                self._enqueue(inlet, inlet.head_level(), False)
        return 0

    cdef int put(self, Inlet inlet, bint is_first) except -1:
        """Put the inlet at the end of its level, or before all others of its level."""
        self.discard(inlet)
        if inlet.is_from_node() or inlet.moving is not None or inlet.is_discarding():
            self.eager[inlet] = None
        return self._enqueue(inlet, inlet.head_level(), is_first)

    cdef int _enqueue(self, Inlet inlet, int level, bint is_first) except -1:
        if self.queues[level] is None:
            self.queues[level] = OrderedDict()
        self.levels[inlet] = level
        self.queues[level][inlet] = None
        if is_first:
            self.queues[level].move_to_end(inlet, False)
        return 0

    cdef int level_now(self) except -2:
        """Return the highest level that has a ranked inlet, -1 if none has."""
        cdef int level
        for level in range(LEVELS - 1, -1, -1):
            if self.queues[level]:
                return level
        return NO_LEVEL

    cdef Inlet take_at(self, int level):
        """Remove and return the inlet whose turn is next in ``level``, which has one."""
        cdef Inlet inlet = next(iter(self.queues[level]))
        self.discard(inlet)
        return inlet

    cdef Inlet take_only(self):
        """Remove and return the only inlet."""
        cdef Inlet inlet = next(iter(self.levels))
        self.discard(inlet)
        return inlet
