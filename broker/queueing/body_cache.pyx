"""The bodies kept in memory, and the bodies to fetch from the store.

Bodies that the store does not hold (yet) are pinned. Other bodies stay while there is room, the oldest leaving first: a
consumer that keeps up never causes a read. A message has a body exactly while the body is in memory.
"""

from broker.queueing.message cimport QueuedMessage

from collections import OrderedDict

CACHE_BYTES = 32 << 20

cdef enum:
    # Bytes that the message, its entry and its place here take beside the body.
    BESIDE_BYTES = 384


cdef class Fetch:
    """A pending read of a body's bytes; ``wanted`` is a BodyRange."""

    cdef int arrive(self, bytes body, double now) except -1:
        raise NotImplementedError

    cdef int fail(self, double now) except -1:
        raise NotImplementedError

    @property
    def address(self):
        """The address of the queue that needs the bytes."""
        raise NotImplementedError

    def on_body(self, bytes body, double now):
        self.arrive(body, now)

    def on_unreadable(self, double now):
        """Called when the bytes can never be read."""
        self.fail(now)


cdef class BodyCache:
    """Always: ``cached_bytes <= cache_bytes``; a message with a body that is not in ``cached`` is pinned."""

    def __init__(self, cache_bytes=CACHE_BYTES):
        self.cache_bytes = cache_bytes
        self.cached = OrderedDict()
        self.fetches = []

    cdef int pin(self, QueuedMessage message, bytes body) except -1:
        message.body = body
        self.pinned_bytes += len(body)
        return 0

    cdef int unpin(self, QueuedMessage message) except -1:
        """Cache the body, now that the store holds the message, and evict the oldest bodies beyond the limit."""
        cdef QueuedMessage oldest
        self.pinned_bytes -= len(message.body)
        self.cached_bytes += len(message.body) + BESIDE_BYTES
        self.cached[message] = None
        while self.cached_bytes > self.cache_bytes:
            oldest = self.cached.popitem(last=False)[0]
            self.cached_bytes -= len(oldest.body) + BESIDE_BYTES
            oldest.body = None
        return 0

    cdef int forget(self, QueuedMessage message) except -1:
        if message.body is None:
            return 0
        if self.cached.pop(message, self) is self:
            self.pinned_bytes -= len(message.body)
        else:
            self.cached_bytes -= len(message.body) + BESIDE_BYTES
        message.body = None
        return 0

    cdef int fetch(self, Fetch fetch) except -1:
        """Queue a read; the body arrives later."""
        self.fetches.append(fetch)
        return 0

    def take_fetches(self):
        fetches, self.fetches = self.fetches, []
        return fetches
