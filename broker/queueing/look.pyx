"""A look at some messages of a queue, with the bytes of their bodies, for an operator: the queue does not change.

While a look lasts, it holds the bodies of its messages as a delivery does: a message that a consumer takes meanwhile
stays in memory, or in the store, until the look ends. Bodies that are not in memory are read by the disk's thread.
"""

from broker.queueing.body_cache cimport Fetch
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.message cimport ACQUIRED, ARCHIVED, QueueEntry, QueuedMessage
from broker.queueing.message_store cimport MessageStore
from broker.queueing.packed cimport Pack

from broker.store.addressed import as_delivered, as_published
from broker.store.batch import BodyRange


cdef class BrowsedMessage:
    """One message of a look.

    ``body`` has its encoded bytes, or the first of them, as a consumer of the queue gets them, without the history that
    the broker adds; None if they cannot be read. ``annotations``: the encoded section that consumers added, or None.
    """

    cdef readonly QueueEntry entry
    cdef readonly bytes body
    cdef readonly bytes annotations

    @property
    def is_gone(self):
        """Whether the message has left the queue since the look began."""
        return self.entry.standing == ARCHIVED

    @property
    def is_locked(self):
        return self.entry.standing == ACQUIRED


cdef class _LookedAt(Fetch):
    """A read of the body of one message of a look."""

    cdef Look look
    cdef BrowsedMessage seen

    cdef int arrive(self, bytes body, double now) except -1:
        self.look._put(self.seen, body)
        return self.look._on_read()

    cdef int fail(self, double now) except -1:
        return self.look._on_read()

    @property
    def address(self):
        return self.look.held.address


cdef class Look:
    """A look at the first messages of queue ``held`` whose positions are above ``after``; ``end`` has to be called.

    At most ``count`` messages, and so many that their bodies have about ``most_bytes``, with the first ``body_bytes``
    of large ones. Waiting messages and those that consumers hold are looked at, expired ones are not.
    """

    cdef MessageStore message_store
    cdef HeldQueue held
    cdef readonly list messages
    # The position of the last message looked at, expired ones included; and whether messages may follow it.
    cdef readonly long long last_position
    cdef readonly bint has_more
    cdef list packs
    cdef long missing
    cdef object then

    def __init__(self, MessageStore message_store not None, HeldQueue held not None, long long after, Py_ssize_t count,
                 size_t most_bytes, size_t body_bytes):
        cdef list entries
        cdef QueueEntry entry
        cdef Pack pack
        cdef size_t size_bytes = 0
        self.message_store, self.held = message_store, held
        self.messages, self.packs = [], []
        self.last_position = after
        entries = held.queue.beyond(after, count, self.packs)
        self.has_more = len(entries) == count
        for pack in self.packs:
            pack.viewers += 1
        for entry in entries:
            if size_bytes >= most_bytes:
                self.has_more = True
                break
            self.last_position = entry.position
            if entry.is_past(message_store.now):
                continue
            size_bytes += min(entry.message.size_bytes, body_bytes)
            self._add(entry, body_bytes)

    def read(self, then):
        """Have ``then()`` called once all bodies of the look are there; return True, and do not call, if they are."""
        self.then = then
        return self.missing == 0

    def end(self):
        """Let go of the messages; call once, not while bodies are being read."""
        cdef Pack pack
        cdef BrowsedMessage seen
        messages, self.messages = self.messages, []
        for seen in messages:
            self.message_store.release(seen.entry.message)
        packs, self.packs = self.packs, []
        for pack in packs:
            pack.viewers -= 1
            pack.close()

    cdef int _add(self, QueueEntry entry, size_t body_bytes) except -1:
        cdef QueuedMessage message = entry.message
        cdef BrowsedMessage seen = BrowsedMessage.__new__(BrowsedMessage)
        cdef _LookedAt fetch
        seen.entry = entry
        seen.annotations = self.message_store.annotated.get(self.held, message.message_id)
        message.references += 1
        self.messages.append(seen)
        if message.body is not None:
            self._put(seen, message.body)
            return 0
        fetch = _LookedAt.__new__(_LookedAt)
        fetch.look, fetch.seen = self, seen
        fetch.wanted = BodyRange(
            message.message_id,
            message.is_large,
            0,
            min(message.size_bytes, body_bytes) if message.is_large else message.size_bytes,
            self.message_store.new_consumer_id() if message.is_large else 0,
        )
        self.missing += 1
        return self.message_store.body_cache.fetch(fetch)

    cdef int _put(self, BrowsedMessage seen, bytes body) except -1:
        cdef bint is_exact = self.held.is_subscription and not self.held.has_wildcards
        seen.body = as_published(body) if is_exact else as_delivered(body)
        return 0

    cdef int _on_read(self) except -1:
        self.missing -= 1
        if self.missing == 0 and self.then is not None:
            then, self.then = self.then, None
            then()
        return 0
