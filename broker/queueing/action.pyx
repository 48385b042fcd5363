"""Verdicts and departures of messages, and the actions a queue returns.

`MessageStore` carries out the actions in order. An action can be matched by position (``case Archive(entry, why)``), in
tests and in Python code.
"""

cimport cython

from broker.queueing.message cimport QueueEntry

from enum import Enum


class SettlementVerdict(Enum):
    """A consumer's outcome as the queue takes it: only FAILED raises the message's delivery-count."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    FAILED = "failed"


class Departure(Enum):
    """The reason why a message left a queue or subscription."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    GIVEN_UP = "given up"
    """Deliveries failed until the message's delivery-count reached the queue's ``max_delivery_attempts``."""
    NO_ROOM = "no room"
    """Newer messages came, and the queue was over its limit, or the broker short of memory for bodies."""
    DROPPED = "dropped"
    """The whole queue or subscription was deleted."""
    PURGED = "purged"
    MOVED = "moved"


def _are_equal(action, other):
    return type(action) is type(other) and _parts(action) == _parts(other)


def _shown(action):
    return f"{type(action).__name__}{_parts(action)}"


def _parts(action):
    return tuple(getattr(action, name) for name in action.__match_args__)


@cython.freelist(256)
cdef class Deliver:
    """Send this entry to this consumer; a browser gets a copy, and never returns the entry to the queue."""

    __match_args__ = ("consumer_id", "entry")

    def __init__(self, long consumer_id, QueueEntry entry not None):
        self.consumer_id, self.entry = consumer_id, entry

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


@cython.freelist(256)
cdef class Archive:
    """The entry left the queue: delete the queue's entry in the store, or move the message to a dead letter queue."""

    __match_args__ = ("entry", "departure")

    def __init__(self, QueueEntry entry not None, departure):
        self.entry, self.departure = entry, departure

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


cdef class Recount:
    """The entry's delivery-count changed: write the new count to the store."""

    __match_args__ = ("entry",)

    def __init__(self, QueueEntry entry not None):
        self.entry = entry

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


cdef class WantMark:
    """Write the queue's seen mark for ``priority`` to the store, then call ``Queue.on_mark``.

    The queue gives no message of this priority with an id above the old mark until then. Messages of another priority
    have a mark of their own, and do not wait.
    """

    __match_args__ = ("priority", "message_id")

    def __init__(self, int priority, long long message_id):
        self.priority, self.message_id = priority, message_id

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


Action = Deliver | Archive | Recount | WantMark
