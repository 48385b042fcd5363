"""The message bodies that a broker has in memory, and the bodies to fetch from its store.

Bodies that the store does not hold (yet) are pinned: the cache never drops such a body. Other bodies stay while there
is room, the oldest leaving first: a consumer that keeps up never causes a read. ``message.body`` is set exactly while
the body is in memory.
"""

from broker.queueing.message cimport QueuedMessage

from collections import OrderedDict

CACHE_BYTES = 32 << 20

cdef enum:
    # Memory counted for a cached message beside its body: for the message, its queue entry and its place in the cache.
    BESIDE_BYTES = 384


cdef class Fetch:
    """A pending read of a body's bytes from the store; ``wanted`` is the BodyRange to read."""

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
        """Called when the store found the bytes damaged, so that they can never be read."""
        self.fail(now)


cdef class BodyCache:
    """The bodies in memory: pinned bodies without limit, other bodies up to ``cache_bytes``; and the reads to make.

    Always: ``cached_bytes <= cache_bytes``; a message with a body that is not in ``cached`` is pinned
    """

    def __init__(self, cache_bytes=CACHE_BYTES):
        self.cache_bytes = cache_bytes
        self.cached = OrderedDict()
        self.fetches = []

    cdef int pin(self, QueuedMessage message, bytes body) except -1:
        message.body = body
        self.pinned_bytes += len(body)
        return 0

    cdef int unpin(self, QueuedMessage message) except -1:
        """Cache a pinned body, now that the store holds the message; drop the oldest cached bodies over the limit."""
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
        """Queue a read from the store; the driver's disk calls ``on_body`` of ``fetch`` later."""
        self.fetches.append(fetch)
        return 0

    def take_fetches(self):
        fetches, self.fetches = self.fetches, []
        return fetches
