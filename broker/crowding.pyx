"""Who gives way when bodies that lie in memory alone have taken much of it? Subscriptions that do not last, the largest first.

Else one whose subscriber hangs would take all there is, and every producer of the broker would wait for it.
"""

CROWDED_BYTES = 192 << 20
"""Below what holds all producers back (`PINNED_LIMIT_BYTES`)."""
ROOMY_BYTES = 160 << 20
FEW_BYTES = 1 << 20
"""Who has less is not behind, and less is no news."""

cdef long long _CROWDED_BYTES = CROWDED_BYTES, _ROOMY_BYTES = ROOMY_BYTES, _FEW_BYTES = FEW_BYTES


cdef class Crowding:
    """``spared`` have nothing more to give: their consumers hold the rest.

    Not those that last: of them are limits, and what to do beyond these.
    """

    def __cinit__(self, Shelf shelf):
        self.shelf = shelf
        self.spared, self.gave_way = {}, []

    cdef bint is_due(self) noexcept:
        """There is too much, and it has changed since the last time that somebody was to give way."""
        cdef long long held = self.shelf.pinned_bytes
        return held >= _CROWDED_BYTES and not -_FEW_BYTES < held - self.tried_at < _FEW_BYTES

    cdef int begin(self) except -1:
        self.tried_at = self.shelf.pinned_bytes
        self.spared.clear()
        return 0

    cdef HeldQueue furthest_behind(self, dict passing):
        """None: there is room again, or nobody is behind."""
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
        """What it lost."""
        if count:
            self.gave_way.append((held, count, size_bytes))
        return 0

    def take_given_way(self):
        """(queue, messages, bytes) of all that lost something."""
        if not self.gave_way:
            return ()
        found, self.gave_way = self.gave_way, []
        return found
