"""Debug events about senders without credit, of which a node makes none unless its log wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log_event import Level, LogEvent


@dataclass(frozen=True, slots=True)
class CreditStalled(LogEvent):
    """The sender of the link with number `link` has had no credit for `for_ms`, for the cause `cause`.

    Causes are those of link logs: no_taker, takers; at a broker full_queue, disk, memory. Logged once, in the second
    in which the lack begins; links without a record, as with `link_logs: off`, have no such event.
    """

    level: ClassVar[Level] = "debug"
    link: int
    name: str
    client: str
    cause: str
    for_ms: int


@dataclass(frozen=True, slots=True)
class CreditResumed(LogEvent):
    """The sender of the link with number `link`, of which `credit_stalled` told, has credit again."""

    level: ClassVar[Level] = "debug"
    link: int
    credit: int
