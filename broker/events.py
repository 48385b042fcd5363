"""Events that a broker writes to its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class StoreOpened(LogEvent):
    """A broker that starts has read its store; the counts are of durable queues, subscriptions and messages in it."""

    directory: str
    queue_count: int
    message_count: int
    took_s: float


@dataclass(frozen=True, slots=True)
class ClockWasSet(LogEvent):
    """The machine's clock was set while the broker did not run, or is not set yet; message deadlines ignore the clock.

    Deadlines go on from the time that the broker noted at its last start. They follow the clock again when the broker
    starts after a reboot with a right clock, or without the file `clock` in the directory.
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
    """The broker deleted a queue made under a pattern of the topology, as it was empty and without links too long."""

    address: str
    owner: str | None
    unused_s: float


@dataclass(frozen=True, slots=True)
class SubscriptionEnded(LogEvent):
    """A client ended a durable subscription, with its messages: it unsubscribed, or attached with another filter.

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
    """A durable subscription without an owner, as of an older version, now belongs to the user who attached to it."""

    address: str
    subscriber: str
    owner: str


@dataclass(frozen=True, slots=True)
class SubscriberBehind(LogEvent):
    """A non-durable subscription took too much of the broker's memory and lost its oldest messages."""

    level: ClassVar[Level] = "warning"
    address: str
    subscriber: str | None
    message_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryLow(LogEvent):
    """The bodies that are only in the broker's memory have reached their limit: all producers wait, consumers go on."""

    level: ClassVar[Level] = "warning"
    held_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryFine(LogEvent):
    """The bodies that are only in the broker's memory are below their limit again, after `MemoryLow`."""

    held_bytes: int


@dataclass(frozen=True, slots=True)
class StoreDamaged(LogEvent):
    """A broker that starts found a part of its store that cannot be read; everything else works.

    `amqpmesh store check` says more.
    """

    level: ClassVar[Level] = "error"
    directory: str
    finding: str


@dataclass(frozen=True, slots=True)
class MessageUnreadable(LogEvent):
    """The body of a stored message is damaged or missing: the queue keeps the message, and no consumer gets it."""

    level: ClassVar[Level] = "error"
    address: str
    message_id: int
    why: str


@dataclass(frozen=True, slots=True)
class LinkRefused(LogEvent):
    """The broker refused the attach of a link: no such address, no permission, a limit, or something not supported."""

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
    """A link was attached again, under its name, over another session; the broker detached the older link. [2.6.1]"""

    container_id: str
    link: str
    peer: str


@dataclass(frozen=True, slots=True)
class DiskLow(LogEvent):
    """The broker's disk has less free space than wanted: producers whose messages are stored wait, consumers go on."""

    level: ClassVar[Level] = "warning"
    directory: str
    free_bytes: int
    reusable_bytes: int
    reserve_bytes: int
    wanted_bytes: int


@dataclass(frozen=True, slots=True)
class DiskFine(LogEvent):
    """The broker's disk has enough free space again, after `DiskLow`: all producers go on."""

    directory: str
    free_bytes: int
    reusable_bytes: int
    reserve_bytes: int
    wanted_bytes: int
