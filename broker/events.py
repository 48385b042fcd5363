"""Events that a broker writes to its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class StoreOpened(LogEvent):
    """The broker read its store at the start; the counts are the queues and messages found there."""

    directory: str
    queue_count: int
    message_count: int
    took_s: float


@dataclass(frozen=True, slots=True)
class ClockWasSet(LogEvent):
    """The machine's clock was set while the broker did not run; message deadlines ignore the change.

    Deadlines follow the clock again after a reboot, or once the file `clock` in the directory is deleted.
    """

    level: ClassVar[Level] = "warning"
    directory: str
    by_s: float


@dataclass(frozen=True, slots=True)
class SubscriptionExpired(LogEvent):
    """A durable subscription had no consumer for so long that the broker deleted the subscription and its messages."""

    level: ClassVar[Level] = "warning"
    address: str
    subscriber: str
    unused_s: float
    message_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class QueueExpired(LogEvent):
    """A queue that a client's first use made, under a pattern, was deleted: it was empty and without links too long."""

    address: str
    owner: str | None
    unused_s: float


@dataclass(frozen=True, slots=True)
class SubscriptionEnded(LogEvent):
    """A client ended a durable subscription, with its messages: by unsubscribing, or with a new filter for its name.

    ``new_filter`` is the filter of the new subscription, null after unsubscribing. ``user`` is null for a node or an
    operator; ``owner`` is null if the subscription had no owner.
    """

    address: str
    subscriber: str
    owner: str | None
    user: str | None
    peer: str
    message_count: int
    new_filter: str | None


@dataclass(frozen=True, slots=True)
class SubscriptionOwned(LogEvent):
    """A durable subscription of an older version, without owner, now belongs to the first user who took from it."""

    address: str
    subscriber: str
    owner: str


@dataclass(frozen=True, slots=True)
class SubscriberBehind(LogEvent):
    """A non-durable subscription took too much memory and lost its oldest messages; producers did not wait."""

    level: ClassVar[Level] = "warning"
    address: str
    subscriber: str | None
    message_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryLow(LogEvent):
    """Messages that are only in the broker's memory have reached their limit: all producers wait, consumers go on."""

    level: ClassVar[Level] = "warning"
    held_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryFine(LogEvent):
    """Messages that are only in the broker's memory are below their limit again: producers go on."""

    held_bytes: int


@dataclass(frozen=True, slots=True)
class StoreDamaged(LogEvent):
    """Part of the broker's store cannot be read; everything else works. `amqpmesh store check` says more."""

    level: ClassVar[Level] = "error"
    directory: str
    finding: str


@dataclass(frozen=True, slots=True)
class MessageUnreadable(LogEvent):
    """The body of a message is damaged: the queue keeps the message, and no consumer gets the message."""

    level: ClassVar[Level] = "error"
    address: str
    message_id: int
    why: str


@dataclass(frozen=True, slots=True)
class LinkRefused(LogEvent):
    """The broker refused the attach of a link: no such address, no permission, a limit, or an unsupported request."""

    level: ClassVar[Level] = "warning"
    peer: str
    user: str | None
    container_id: str
    link: str
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class ConsumerTooSmall(LogEvent):
    """The broker ended a consumer's link, since all waiting messages exceeded the link's max-message-size.

    ``size_bytes`` is the size of the first of these messages.
    """

    level: ClassVar[Level] = "warning"
    address: str
    peer: str
    user: str | None
    container_id: str
    link: str
    size_bytes: int
    max_message_bytes: int


@dataclass(frozen=True, slots=True)
class LinkStolen(LogEvent):
    """A link was attached again over another session; the broker detached the older link. [2.6.1]"""

    container_id: str
    link: str
    peer: str


@dataclass(frozen=True, slots=True)
class DiskLow(LogEvent):
    """The disk is nearly full, with queues or other files: producers of stored messages wait, consumers go on."""

    level: ClassVar[Level] = "warning"
    directory: str
    free_bytes: int
    reusable_bytes: int
    reserve_bytes: int
    wanted_bytes: int


@dataclass(frozen=True, slots=True)
class DiskFine(LogEvent):
    """The disk has room again, after `DiskLow`: all producers go on."""

    directory: str
    free_bytes: int
    reusable_bytes: int
    reserve_bytes: int
    wanted_bytes: int
