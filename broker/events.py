"""Events that a broker writes to its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class StoreOpened(LogEvent):
    """A broker that starts has read its store: ``queue_count`` durable queues and subscriptions, with their messages.

    ``message_count`` counts each message once, in however many of them.
    """

    directory: str
    queue_count: int
    message_count: int
    took_s: float


@dataclass(frozen=True, slots=True)
class ClockWasSet(LogEvent):
    """The machine's clock was set since the broker's last start, or is not set yet; message deadlines ignore the clock.

    Deadlines go on from the time noted at the last start, plus the time since then, unless the machine was booted. The
    deadlines follow the clock again at a start when the clock is within a minute of that time, after a boot with a
    clock that is set, or without the file `clock` in the directory.
    """

    level: ClassVar[Level] = "warning"
    directory: str
    by_s: float


@dataclass(frozen=True, slots=True)
class SubscriptionExpired(LogEvent):
    """The broker deleted a durable subscription, with its messages, since its time without a consumer was over.

    The time is the topology's for the address, or that of the last consumer's source if that is shorter.
    """

    level: ClassVar[Level] = "warning"
    address: str
    subscriber: str
    unused_s: float
    message_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class QueueExpired(LogEvent):
    """The broker deleted an empty queue made under a pattern: no link had used it for the expiry of the pattern."""

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
    """A durable subscription without an owner, as of an older version, now belongs to the user who attached to it.

    The user is ``owner``.
    """

    address: str
    subscriber: str
    owner: str


@dataclass(frozen=True, slots=True)
class SubscriberBehind(LogEvent):
    """A non-durable subscription lost its oldest messages, since message bodies took too much memory of the broker.

    The subscription with the most bytes loses messages first.
    """

    level: ClassVar[Level] = "warning"
    address: str
    subscriber: str | None
    message_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryLow(LogEvent):
    """The bodies that are only in the broker's memory have reached 256 MiB: all producers wait, consumers go on."""

    level: ClassVar[Level] = "warning"
    held_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryFine(LogEvent):
    """The bodies that are only in the broker's memory are below 256 MiB again: producers that waited for it go on."""

    held_bytes: int


@dataclass(frozen=True, slots=True)
class StoreDamaged(LogEvent):
    """A broker that starts found damage in its store, as ``finding`` says, and goes on with all other content.

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
    """The broker refused the attach of a link; `condition` and `description` say why, for example: no such address,
    no permission, a limit, a subscription in use, or something not supported.
    """

    level: ClassVar[Level] = "warning"
    peer: str
    user: str | None
    container_id: str
    link: str
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class ConsumerTooSmall(LogEvent):
    """The broker ended a consumer's link: all waiting messages are larger than the link's max-message-size.

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
    """A link was attached again, under its name, over another session; the broker detached the older link. [2.6.1]

    ``peer`` is the peer of the older link.
    """

    container_id: str
    link: str
    peer: str


@dataclass(frozen=True, slots=True)
class DiskLow(LogEvent):
    """The broker's disk has less free space than wanted: producers of stored messages wait, consumers go on.

    Producers in the middle of a large message wait, too.
    """

    level: ClassVar[Level] = "warning"
    directory: str
    free_bytes: int
    reusable_bytes: int
    reserve_bytes: int
    wanted_bytes: int


@dataclass(frozen=True, slots=True)
class DiskFine(LogEvent):
    """The broker's disk has enough free space again, after `DiskLow`: producers that waited for space go on."""

    directory: str
    free_bytes: int
    reusable_bytes: int
    reserve_bytes: int
    wanted_bytes: int


@dataclass(frozen=True, slots=True)
class AttachAnswered(LogEvent):
    """The broker accepted a link of a router, client or operator to a queue, topic or subscription.

    `direction` is incoming for a producer. `subscriber` names a subscription; a link without an address has none.
    """

    level: ClassVar[Level] = "debug"
    peer: str
    user: str | None
    container_id: str
    link: str
    direction: str
    address: str | None
    subscriber: str | None
