"""Log events of a broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class StoreOpened(LogEvent):
    """The broker read its store; the counts are the queues and messages found there."""

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
    """A queue made under a pattern was empty and without links for so long that the broker deleted the queue."""

    address: str
    owner: str | None
    unused_s: float


@dataclass(frozen=True, slots=True)
class SubscriptionEnded(LogEvent):
    """A client ended a durable subscription, with its messages: by unsubscribing, or with a new filter for its name.

    ``new_filter`` is the filter of the new subscription. ``user`` is null for a node or an operator, ``owner`` if the
    subscription had no owner.
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
    """A subscription in memory took too much memory and lost its oldest messages; producers did not wait."""

    level: ClassVar[Level] = "warning"
    address: str
    subscriber: str | None
    message_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryLow(LogEvent):
    """Messages in memory alone have reached their limit: producers wait, consumers go on."""

    level: ClassVar[Level] = "warning"
    held_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryFine(LogEvent):
    """Memory for messages is free again: producers go on."""

    held_bytes: int


@dataclass(frozen=True, slots=True)
class StoreDamaged(LogEvent):
    """Part of the store cannot be read; everything else works. `amqpmesh store check` says more."""

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
    """The broker refused a link: no such address, no permission, a limit, or an unsupported request."""

    level: ClassVar[Level] = "warning"
    peer: str
    user: str | None
    container_id: str
    link: str
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class ConsumerTooSmall(LogEvent):
    """The broker ended a link: all waiting messages exceeded its max-message-size; ``size_bytes`` has the first."""

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
    """A link was attached again over another session; the older link was detached. [2.6.1]"""

    container_id: str
    link: str
    peer: str


@dataclass(frozen=True, slots=True)
class DiskLow(LogEvent):
    """The disk is nearly full, with our queues or other files: producers wait until there is room; consumers go on."""

    level: ClassVar[Level] = "warning"
    directory: str
    free_bytes: int
    reusable_bytes: int
    reserve_bytes: int
    wanted_bytes: int


@dataclass(frozen=True, slots=True)
class DiskFine(LogEvent):
    """The disk has room again: producers go on."""

    directory: str
    free_bytes: int
    reusable_bytes: int
    reserve_bytes: int
    wanted_bytes: int
