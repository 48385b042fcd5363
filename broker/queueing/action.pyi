from enum import Enum

from broker.queueing.message import QueueEntry

class SettlementVerdict(Enum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    FAILED = "failed"

class Departure(Enum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    GIVEN_UP = "given up"
    NO_ROOM = "no room"
    DROPPED = "dropped"
    PURGED = "purged"
    MOVED = "moved"

class Deliver:
    __match_args__ = ("consumer_id", "entry")
    def __init__(self, consumer_id: int, entry: QueueEntry) -> None: ...
    @property
    def consumer_id(self) -> int: ...
    @property
    def entry(self) -> QueueEntry: ...

class Archive:
    __match_args__ = ("entry", "departure")
    def __init__(self, entry: QueueEntry, departure: Departure) -> None: ...
    @property
    def entry(self) -> QueueEntry: ...
    @property
    def departure(self) -> Departure: ...

class Recount:
    __match_args__ = ("entry",)
    def __init__(self, entry: QueueEntry) -> None: ...
    @property
    def entry(self) -> QueueEntry: ...

class WantMark:
    __match_args__ = ("priority", "message_id")
    def __init__(self, priority: int, message_id: int) -> None: ...
    @property
    def priority(self) -> int: ...
    @property
    def message_id(self) -> int: ...

Action = Deliver | Archive | Recount | WantMark
