"""Eviction when bodies that no store has fill the memory: non-durable subscriptions lose their oldest messages.

The subscription with the most bytes loses messages first. Without eviction a subscription with a hanging consumer would
take all memory for bodies, and every producer of the broker would wait.
"""

CROWDED_BYTES = 192 << 20
"""Eviction starts at this many bytes of pinned bodies, which only memory has: below `PINNED_LIMIT_BYTES`, at which all
producers are held back."""
ROOMY_BYTES = 160 << 20
"""Eviction stops below this number of pinned bytes."""
FEW_BYTES = 1 << 20
"""A subscription with no more bytes than this loses nothing. Eviction is tried again only once the number of pinned
bytes has changed by as much."""

cdef long long _CROWDED_BYTES = CROWDED_BYTES, _ROOMY_BYTES = ROOMY_BYTES, _FEW_BYTES = FEW_BYTES


cdef class BodyEviction:
    """Chooses the non-durable subscription that has to lose messages next, and keeps the losses for the broker's log.

    ``spared`` subscriptions are not chosen again until `begin`: consumers hold all messages left in them.
    Durable subscriptions never lose messages by eviction: their own limits and overflow policies apply.
    """

    def __cinit__(self, BodyCache body_cache):
        self.body_cache = body_cache
        self.spared, self.gave_way = {}, []

    cdef bint is_due(self) noexcept:
        """Whether CROWDED_BYTES or more are pinned, and FEW_BYTES more or fewer than when the last eviction began."""
        cdef long long held = self.body_cache.pinned_bytes
        return held >= _CROWDED_BYTES and not -_FEW_BYTES < held - self.tried_at < _FEW_BYTES

    cdef int begin(self) except -1:
        self.tried_at = self.body_cache.pinned_bytes
        self.spared.clear()
        return 0

    cdef HeldQueue furthest_behind(self, dict passing):
        """Return the subscription to lose messages next: of ``passing``, the non-durable ones, the one with most bytes.

        None once there is room again, or no subscription that is not spared has more than FEW_BYTES.
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
        """Keep the number and bytes of the messages that a subscription lost, until `take_given_way` returns them."""
        if count:
            self.gave_way.append((held, count, size_bytes))
        return 0

    def take_given_way(self):
        """Return (subscription, number of messages, bytes) of every loss by eviction since the last call."""
        if not self.gave_way:
            return ()
        found, self.gave_way = self.gave_way, []
        return found
