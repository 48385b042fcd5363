"""The message bodies that a broker has in memory, and the bodies to fetch from its store.

Bodies that the store does not hold (yet) are pinned: the cache never drops such a body. Other bodies stay while there
is room, the oldest leaving first: a consumer that keeps up never causes a read. ``message.body`` is set exactly while
the body is in memory.
"""

from broker.queueing.message cimport QueuedMessage

from collections import OrderedDict

CACHE_BYTES = 32 << 20

cdef enum:
    # So many bytes are counted for a cached message beside its body: for message, queue entry and place in the cache.
    BESIDE_BYTES = 384


cdef class Fetch:
    """A read of a body's bytes from the store that is asked for and not done; ``wanted`` is the BodyRange to read."""

    cdef int arrive(self, bytes body, double now) except -1:
        raise NotImplementedError

    cdef int fail(self, double now) except -1:
        raise NotImplementedError

    @property
    def address(self):
        """The address of the queue for whose consumer the bytes are read."""
        raise NotImplementedError

    def on_body(self, bytes body, double now):
        self.arrive(body, now)

    def on_unreadable(self, double now):
        """End the read, whose bytes are damaged or missing in the store, so that they can never be read."""
        self.fail(now)


cdef class BodyCache:
    """The bodies in a broker's memory: pinned bodies without limit, others up to ``cache_bytes``; and reads to make.

    Always: ``cached_bytes <= cache_bytes``; a message with a body in memory that is not in ``cached`` is pinned
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
        """Unpin the body of a message that the store now holds: cache the body, and drop the oldest over the limit."""
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
        """Ask for a read from the store; once it is done ``fetch.on_body`` or ``fetch.on_unreadable`` is called."""
        self.fetches.append(fetch)
        return 0

    def take_fetches(self):
        fetches, self.fetches = self.fetches, []
        return fetches
