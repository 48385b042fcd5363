"""A message in a broker's memory, with a body only while the body cache has the body; and its entry in one queue."""

cimport cython
from libc.math cimport INFINITY

from enum import Enum


class MessageState(Enum):
    """States of a message in a queue. [3.3]"""

    AVAILABLE = "available"
    ACQUIRED = "acquired"
    ARCHIVED = "archived"
    UNREADABLE = "unreadable"
    """The body in the store is damaged: the queue keeps the message, and no consumer gets the message."""


_STATES = {AVAILABLE: MessageState.AVAILABLE, ACQUIRED: MessageState.ACQUIRED, ARCHIVED: MessageState.ARCHIVED, UNREADABLE: MessageState.UNREADABLE}


@cython.freelist(1024)
cdef class QueuedMessage:
    """One message, shared by all queues and subscriptions that hold the message.

    ``is_stored``   the body is in the store, or will be once its batch is committed
    ``is_large``    the body has a file of its own
    ``references``  the number of entries, entries to come, deliveries and reads that need the body; 0 deletes the body
    """

    def __init__(self, message_id, size_bytes, is_stored, is_large=False, expires_at_s=None, priority=4):
        self.message_id, self.size_bytes = message_id, size_bytes
        self.is_stored, self.is_large = is_stored, is_large
        self.priority = priority
        self.deadline_s = INFINITY if expires_at_s is None else expires_at_s

    @property
    def expires_at_s(self):
        """The message's deadline in monotonic seconds; None if the message never expires."""
        return None if self.deadline_s == INFINITY else self.deadline_s

    cdef bint is_past(self, double now) noexcept:
        return self.deadline_s <= now

    def is_expired(self, double now):
        return self.is_past(now)


@cython.freelist(1024)
cdef class QueueEntry:
    """A message's place in one queue.

    ``position`` orders the queue and never changes: a returned entry goes back to its place. ``shunned_by`` are the
    consumers that said undeliverable-here, and do not get the entry again. [3.4.5] ``cause`` says why the broker moved
    the message to this queue; None if a producer sent the message to it. An entry with a cause has no deadline.
    """

    def __init__(self, QueuedMessage message not None, long long position, unsigned int delivery_count=0, cause=None):
        self.message, self.position, self.delivery_count = message, position, delivery_count
        self.cause = cause

    @property
    def state(self):
        return _STATES[self.standing]

    @property
    def message_id(self):
        return self.message.message_id

    @property
    def was_seen(self):
        return self.delivery_count > 0

    cdef bint is_past(self, double now) noexcept:
        return self.cause is None and self.message.deadline_s <= now

    cdef bint is_shunned_by(self, long consumer_id) except -1:
        return self.shunned_by is not None and consumer_id in self.shunned_by
