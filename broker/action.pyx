"""What a consumer's settlement means for a queue, and what a queue wants done.

Actions are carried out in order (`Stock`). They match by position, in tests and where they are carried out in Python.
"""

cimport cython

from broker.message cimport Entry

from enum import Enum


class Verdict(Enum):
    """What a consumer's settlement means for the queue."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    FAILED = "failed"


class Departure(Enum):
    """Why a message left the queue."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    GIVEN_UP = "given up"
    """Too many consumers failed."""
    NO_ROOM = "no room"
    """The queue was full, and newer ones came."""
    DROPPED = "dropped"
    """With its queue."""
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
    """Send this entry to this consumer; a browser gets a copy that it need not give back."""

    __match_args__ = ("consumer_id", "entry")

    def __init__(self, long consumer_id, Entry entry not None):
        self.consumer_id, self.entry = consumer_id, entry

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


@cython.freelist(256)
cdef class Archive:
    """The entry is gone from the queue: forget it on disk too."""

    __match_args__ = ("entry", "departure")

    def __init__(self, Entry entry not None, departure):
        self.entry, self.departure = entry, departure

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


cdef class Recount:
    """The entry's delivery-count changed: write it down."""

    __match_args__ = ("entry",)

    def __init__(self, Entry entry not None):
        self.entry = entry

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


cdef class WantMark:
    """Write the seen mark down, then call ``on_mark``: until then nothing above the old one is given.

    Of the messages of this priority: those less urgent wait, while newer ones go.
    """

    __match_args__ = ("priority", "message_id")

    def __init__(self, int priority, long long message_id):
        self.priority, self.message_id = priority, message_id

    def __eq__(self, other):
        return _are_equal(self, other)

    def __repr__(self):
        return _shown(self)


Action = Deliver | Archive | Recount | WantMark
