"""Eviction when bodies in memory alone take too much: non-durable subscriptions of topics lose their oldest messages.

The subscription with the most bytes loses messages first. Without eviction a subscription with a hanging consumer would
take all memory for bodies, and every producer of the broker would wait.
"""

CROWDED_BYTES = 192 << 20
"""Pinned bytes at which eviction starts: below `PINNED_LIMIT_BYTES`, at which all producers are held back."""
ROOMY_BYTES = 160 << 20
"""Eviction stops below this number of pinned bytes."""
FEW_BYTES = 1 << 20
"""A subscription with fewer bytes loses nothing, and eviction is tried again only after a change of this size."""

cdef long long _CROWDED_BYTES = CROWDED_BYTES, _ROOMY_BYTES = ROOMY_BYTES, _FEW_BYTES = FEW_BYTES


cdef class BodyEviction:
    """Chooses the non-durable subscription that has to lose messages next, and keeps the losses for the broker's log.

    ``spared`` subscriptions are chosen no more in this round: consumers hold all messages that are left.
    Durable subscriptions never lose messages by eviction: their own limits and overflow policies apply.
    """

    def __cinit__(self, BodyCache body_cache):
        self.body_cache = body_cache
        self.spared, self.gave_way = {}, []

    cdef bint is_due(self) noexcept:
        """Say whether too many bytes are pinned, and differ by _FEW_BYTES or more from when the last eviction began."""
        cdef long long held = self.body_cache.pinned_bytes
        return held >= _CROWDED_BYTES and not -_FEW_BYTES < held - self.tried_at < _FEW_BYTES

    cdef int begin(self) except -1:
        self.tried_at = self.body_cache.pinned_bytes
        self.spared.clear()
        return 0

    cdef HeldQueue furthest_behind(self, dict passing):
        """The subscription to evict from next, of ``passing``, the broker's non-durable subscriptions.

        None once there is room again, or no subscription has more than FEW_BYTES.
        """
        cdef HeldQueue held, found = None
        cdef long long most = _FEW_BYTES
        if self.body_cache.pinned_bytes < _ROOMY_BYTES:
            return None
        for held in passing:
            if held.passing_bytes > most and held not in self.spared:
                found, most = held, held.passing_bytes
        return found

    cdef int spare(self, HeldQueue held) except -1:
        self.spared[held] = None
        return 0

    cdef int note(self, HeldQueue held, long long count, long long size_bytes) except -1:
        """Keep the number and bytes of the messages that a subscription lost, for `take_given_way`."""
        if count:
            self.gave_way.append((held, count, size_bytes))
        return 0

    def take_given_way(self):
        """Return (subscription, number of messages, bytes) of every loss by eviction since the last call."""
        if not self.gave_way:
            return ()
        found, self.gave_way = self.gave_way, []
        return found
