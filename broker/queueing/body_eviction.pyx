"""Eviction when bodies in memory alone take too much: non-durable subscriptions lose messages, the largest first.

Otherwise a subscription with a hanging consumer would take all memory, and every producer of the broker would wait.
"""

CROWDED_BYTES = 192 << 20
"""Below `PINNED_LIMIT_BYTES`, at which all producers are held back."""
ROOMY_BYTES = 160 << 20
FEW_BYTES = 1 << 20
"""A subscription with fewer bytes is not behind, and a smaller change of memory is no reason to try again."""

cdef long long _CROWDED_BYTES = CROWDED_BYTES, _ROOMY_BYTES = ROOMY_BYTES, _FEW_BYTES = FEW_BYTES


cdef class BodyEviction:
    """``spared`` subscriptions have nothing more to give: their consumers hold the rest.

    Durable subscriptions never lose messages here: their own limits and overflow policies apply.
    """

    def __cinit__(self, BodyCache shelf):
        self.shelf = shelf
        self.spared, self.gave_way = {}, []

    cdef bint is_due(self) noexcept:
        """Whether too much memory is pinned, and the amount changed since the last eviction."""
        cdef long long held = self.shelf.pinned_bytes
        return held >= _CROWDED_BYTES and not -_FEW_BYTES < held - self.tried_at < _FEW_BYTES

    cdef int begin(self) except -1:
        self.tried_at = self.shelf.pinned_bytes
        self.spared.clear()
        return 0

    cdef HeldQueue furthest_behind(self, dict passing):
        """The subscription to evict from next; None once there is room again, or no subscription is behind."""
        cdef HeldQueue held, found = None
        cdef long long most = _FEW_BYTES
        if self.shelf.pinned_bytes < _ROOMY_BYTES:
            return None
        for held in passing:
            if held.passing_bytes > most and held not in self.spared:
                found, most = held, held.passing_bytes
        return found

    cdef int spare(self, HeldQueue held) except -1:
        self.spared[held] = None
        return 0

    cdef int note(self, HeldQueue held, long long count, long long size_bytes) except -1:
        """Note how much a subscription lost."""
        if count:
            self.gave_way.append((held, count, size_bytes))
        return 0

    def take_given_way(self):
        """Return (queue, messages, bytes) of every loss since the last call."""
        if not self.gave_way:
            return ()
        found, self.gave_way = self.gave_way, []
        return found
