"""What does the broker know of a message it holds? Its body only while the shelf keeps it in memory."""

cimport cython
from libc.math cimport INFINITY

from enum import Enum


class State(Enum):
    """Of a message in a queue. [3.3]"""

    AVAILABLE = "available"
    ACQUIRED = "acquired"
    ARCHIVED = "archived"
    UNREADABLE = "unreadable"
    """Its body is damaged: it stays in its queue, and nobody is given it."""


_STATES = {AVAILABLE: State.AVAILABLE, ACQUIRED: State.ACQUIRED, ARCHIVED: State.ARCHIVED, UNREADABLE: State.UNREADABLE}


@cython.freelist(1024)
cdef class Message:
    """One message, however many queues and subscriptions it lies in.

    ``is_stored``   its body is in the store
    ``is_large``    its body lies in a file of its own
    ``references``  entries (and those to come) and copies under way that still need the body; at 0 the body may go
    """

    def __init__(self, message_id, size_bytes, is_stored, is_large=False, expires_at_s=None, priority=4):
        self.message_id, self.size_bytes = message_id, size_bytes
        self.is_stored, self.is_large = is_stored, is_large
        self.priority = priority
        self.deadline_s = INFINITY if expires_at_s is None else expires_at_s

    @property
    def expires_at_s(self):
        """None: never."""
        return None if self.deadline_s == INFINITY else self.deadline_s

    cdef bint is_past(self, double now) noexcept:
        return self.deadline_s <= now

    def is_expired(self, double now):
        return self.is_past(now)


@cython.freelist(1024)
cdef class Entry:
    """A message's place in one queue.

    ``position`` orders the queue and never changes: what comes back comes back to its place.
    ``shunned_by`` are the consumers that said undeliverable-here. [3.4.5]
    ``cause`` says what brought it here, if nobody sent it here; such an entry has no deadline.
    """

    def __init__(self, Message message not None, long long position, unsigned int delivery_count=0, cause=None):
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
