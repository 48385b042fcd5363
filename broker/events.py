"""What a broker says in the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class StoreOpened(LogEvent):
    """The store was read: this is what survived."""

    directory: str
    queue_count: int
    message_count: int
    took_s: float


@dataclass(frozen=True, slots=True)
class ClockWasSet(LogEvent):
    """The machine's clock was set while the broker did not run: deadlines go on as if it had not been.

    They follow the clock again after a reboot, or once the file `clock` in the directory was deleted.
    """

    level: ClassVar[Level] = "warning"
    directory: str
    by_s: float


@dataclass(frozen=True, slots=True)
class SubscriptionExpired(LogEvent):
    """Nobody took from a durable subscription for so long that it was deleted, with its messages."""

    level: ClassVar[Level] = "warning"
    address: str
    subscriber: str
    unused_s: float
    message_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class QueueExpired(LogEvent):
    """A queue that a pattern made was empty, and no link used it for so long that it was deleted."""

    address: str
    owner: str | None
    unused_s: float


@dataclass(frozen=True, slots=True)
class SubscriptionEnded(LogEvent):
    """A client ended a durable subscription, with its messages: by an unsubscribe, or by another one of the same name.

    That one is to ``new_filter``. ``user`` is null for a node or an operator, ``owner`` where nobody owned it.
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
    """A durable subscription had no owner, as those of older versions: the first user with the right took it."""

    address: str
    subscriber: str
    owner: str


@dataclass(frozen=True, slots=True)
class SubscriberBehind(LogEvent):
    """A subscription that lies in memory took too much of it: it lost its oldest messages, and nobody waits for it."""

    level: ClassVar[Level] = "warning"
    address: str
    subscriber: str | None
    message_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryLow(LogEvent):
    """Messages that lie in memory alone have taken all there is for them: producers wait; consumers go on."""

    level: ClassVar[Level] = "warning"
    held_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryFine(LogEvent):
    """There is room again: producers go on."""

    held_bytes: int


@dataclass(frozen=True, slots=True)
class StoreDamaged(LogEvent):
    """Something in the store cannot be read; all else works. `amqpmesh store check` says more."""

    level: ClassVar[Level] = "error"
    directory: str
    finding: str


@dataclass(frozen=True, slots=True)
class MessageUnreadable(LogEvent):
    """The body of a message is damaged: it stays in its queue, and nobody is given it."""

    level: ClassVar[Level] = "error"
    address: str
    message_id: int
    why: str


@dataclass(frozen=True, slots=True)
class LinkRefused(LogEvent):
    """Somebody attached to what is not here, or in a way that is not supported."""

    level: ClassVar[Level] = "warning"
    peer: str
    user: str | None
    container_id: str
    link: str
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class ConsumerTooSmall(LogEvent):
    """All that waited was larger than the max-message-size of a link, which was ended; ``size_bytes`` has the first."""

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
    """The same link was attached again elsewhere; the older one was detached. [2.6.1]"""

    container_id: str
    link: str
    peer: str


@dataclass(frozen=True, slots=True)
class DiskLow(LogEvent):
    """Others or our own queues have taken the disk: producers wait until there is room; consumers go on."""

    level: ClassVar[Level] = "warning"
    directory: str
    free_bytes: int
    reusable_bytes: int
    reserve_bytes: int
    wanted_bytes: int


@dataclass(frozen=True, slots=True)
class DiskFine(LogEvent):
    """There is room again: producers go on."""

    directory: str
    free_bytes: int
    reusable_bytes: int
    reserve_bytes: int
    wanted_bytes: int
