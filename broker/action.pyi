from enum import Enum

from broker.message import Entry

class Verdict(Enum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    FAILED = "failed"

class Departure(Enum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    DROPPED = "dropped"
    PURGED = "purged"
    MOVED = "moved"

class Deliver:
    __match_args__ = ("consumer_id", "entry")
    def __init__(self, consumer_id: int, entry: Entry) -> None: ...
    @property
    def consumer_id(self) -> int: ...
    @property
    def entry(self) -> Entry: ...

class Archive:
    __match_args__ = ("entry", "departure")
    def __init__(self, entry: Entry, departure: Departure) -> None: ...
    @property
    def entry(self) -> Entry: ...
    @property
    def departure(self) -> Departure: ...

class Recount:
    __match_args__ = ("entry",)
    def __init__(self, entry: Entry) -> None: ...
    @property
    def entry(self) -> Entry: ...

class WantMark:
    __match_args__ = ("message_id",)
    def __init__(self, message_id: int) -> None: ...
    @property
    def message_id(self) -> int: ...

Action = Deliver | Archive | Recount | WantMark
