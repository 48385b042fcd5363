"""Verdicts of consumers on messages, departures of messages from queues, and the actions that a queue returns.

`MessageStore` carries out the actions in order. An action can be matched by position (``case Archive(entry, why)``), in
tests and in Python code.
"""

cimport cython

from broker.queueing.message cimport QueueEntry

from enum import Enum


class SettlementVerdict(Enum):
    """A consumer's outcome for a message, as a queue takes it: only FAILED raises the message's delivery-count."""

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
    """The message's deliveries failed until its delivery-count reached the queue's ``max_delivery_attempts``."""
    NO_ROOM = "no room"
    """The message was the oldest when the queue was over its limit, or the broker short of memory for bodies."""
    DROPPED = "dropped"
    """The queue or subscription was deleted with all of its messages."""
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
    """The action to send ``entry`` to consumer ``consumer_id``; a browser gets a copy, and never returns the entry."""

    __match_args__ = ("consumer_id", "entry")

    def __init__(self, long consumer_id, QueueEntry entry not None):
        self.consumer_id, self.entry = consumer_id, entry

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


@cython.freelist(256)
cdef class Archive:
    """The action for an entry that left its queue: delete it in the store, or move its message to another queue."""

    __match_args__ = ("entry", "departure")

    def __init__(self, QueueEntry entry not None, departure):
        self.entry, self.departure = entry, departure

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


cdef class Recount:
    """The action to write the new delivery-count of ``entry`` to the store."""

    __match_args__ = ("entry",)

    def __init__(self, QueueEntry entry not None):
        self.entry = entry

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


cdef class WantMark:
    """The action to write ``message_id`` to the store as the seen mark for ``priority``, then to call ``on_mark``.

    Until then the queue gives no message of this priority with an id above the old mark. Messages of another priority
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
