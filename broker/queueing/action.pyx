"""Verdicts and departures of messages, and the actions a queue returns.

Actions are carried out in order (`MessageStore`). Actions match by position, in tests and in Python code.
"""

cimport cython

from broker.queueing.message cimport QueueEntry

from enum import Enum


class SettlementVerdict(Enum):
    """The meaning of a consumer's settlement for the queue."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    FAILED = "failed"


class Departure(Enum):
    """The reason why a message left the queue."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    GIVEN_UP = "given up"
    """The delivery-count reached ``max_delivery_attempts``."""
    NO_ROOM = "no room"
    """The queue was full, and newer messages came."""
    DROPPED = "dropped"
    """The queue was deleted."""
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
    """Send this entry to this consumer; a browser gets a copy and need not give the entry back."""

    __match_args__ = ("consumer_id", "entry")

    def __init__(self, long consumer_id, QueueEntry entry not None):
        self.consumer_id, self.entry = consumer_id, entry

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


@cython.freelist(256)
cdef class Archive:
    """The entry left the queue: delete the entry from the store too."""

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
    """Write the seen mark to the store, then call ``on_mark``: no message above the old mark is given before.

    The mark covers messages of this priority; newer messages of a higher priority may go while less urgent ones wait.
    """

    __match_args__ = ("priority", "message_id")

    def __init__(self, int priority, long long message_id):
        self.priority, self.message_id = priority, message_id

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


Action = Deliver | Archive | Recount | WantMark
