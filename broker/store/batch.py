"""What does a broker ask of its store? One batch of writes at a time, and bodies back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from broker.cause import Cause
from broker.space import Space


class StoreError(OSError):
    """The disk failed us, or holds what we must not touch. The node ends: a failed sync is never retried."""


class QueueKind(StrEnum):
    QUEUE = "queue"
    SUBSCRIPTION = "subscription"


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A durable queue, or a durable subscription: then ``address`` is its filter.

    ``owner`` is the user who made it, None when the store does not know; ``used_at_s`` is when a link last came or went
    (Unix time, rounded down by the broker), 0 when the store does not know.
    """

    queue_id: int
    kind: QueueKind
    address: str
    container_id: str = ""
    link_name: str = ""
    owner: str | None = None
    used_at_s: int = 0


MessageRow = tuple[int, int, int, int | None, bytes | None]
"""(message_id, size_bytes, priority, expires_at_ms or None, body or None when it is large)."""

EntryRow = tuple[int, int, int]
"""(queue_id, message_id, delivery_count)."""

CauseRow = tuple[int, int, Cause]
"""(queue_id, message_id, what brought it there)."""

Mark = tuple[int, int]
"""The seen mark of (queue_id, priority)."""


@dataclass(slots=True)
class WriteBatch:
    """What is written, and synced, together. Deletes only ever name what an earlier batch wrote."""

    queues: list[QueueRow] = field(default_factory=list)
    """New ones, and those whose row changed: the last row of an id counts."""
    messages: list[MessageRow] = field(default_factory=list)
    entries: list[EntryRow] = field(default_factory=list)
    counts: dict[tuple[int, int], int] = field(default_factory=dict)
    causes: list[CauseRow] = field(default_factory=list)
    annotations: dict[tuple[int, int], bytes | None] = field(default_factory=dict)
    """What consumers added to a message, by (queue_id, message_id), as an encoded section; None: nothing any more."""
    marks: dict[Mark, int] = field(default_factory=dict)
    archived: dict[int, list[int]] = field(default_factory=dict)
    forgotten_causes: dict[int, list[int]] = field(default_factory=dict)
    """queue_id -> message_ids, which are archived too."""
    dropped_messages: list[int] = field(default_factory=list)
    dropped_queues: list[int] = field(default_factory=list)
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    """(message_id, next piece of its large body), in order."""
    sealed: list[int] = field(default_factory=list)
    """Large bodies that are complete, and must be on disk before their rows."""
    finished: list[int] = field(default_factory=list)
    """Large bodies that are complete, and need not survive."""
    unlinked: list[int] = field(default_factory=list)
    """Large bodies that nobody needs any more, complete or not."""

    @property
    def has_rows(self) -> bool:
        return bool(
            self.queues
            or self.messages
            or self.entries
            or self.counts
            or self.causes
            or self.annotations
            or self.marks
            or self.archived
            or self.forgotten_causes
            or self.dropped_messages
            or self.dropped_queues
        )

    @property
    def is_empty(self) -> bool:
        return not (self.has_rows or self.pieces or self.sealed or self.finished or self.unlinked)


@dataclass(frozen=True, slots=True)
class BodyRange:
    """Bytes of one body: all of a small one (``size_bytes`` at least its size), ``size_bytes`` of a large one.

    Of a large body each ``reader`` asks for one range after the other: with the last the checksum of all is known.
    """

    message_id: int
    is_large: bool
    offset: int
    size_bytes: int
    reader: int = 0
    """Number of the consumer's link."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands in place of a body that is damaged; ``why`` goes into a sentence."""

    message_id: int
    why: str


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """Messages ``first_id`` and on, as FORMAT.md has the bytes."""

    first_id: int
    message_index: bytes
    holdings: list[tuple[int, bytes]]
    """(queue_id, counts) of the queues that have something of it."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that the store holds but the bodies."""

    queues: list[QueueRow]
    segments: Iterator[StoredSegment]
    """In order of arrival. Read while they are asked for, all of them before the first commit."""
    causes: dict[tuple[int, int], Cause]
    """Of (queue_id, message_id)."""
    annotations: dict[tuple[int, int], bytes]
    """What consumers added, by (queue_id, message_id): an encoded section of message annotations."""
    message_count: int
    next_queue_id: int
    next_message_id: int
    """The first that the store never had, or has forgotten altogether."""
    damages: list[str] = field(default_factory=list)
    """Sentences: what is left out, or will turn out to be unreadable. Complete when all segments were read."""


class Store(Protocol):
    """``load`` first, once. Then ``commit`` from one thread and ``read`` from one thread, which may be another."""

    def load(self) -> Inventory: ...

    def commit(self, batch: WriteBatch) -> None:
        """Write and sync; raises StoreError, and then nothing of the batch may be promised."""

    def look(self) -> Space:
        """What room there is now. From the thread of ``commit``; raises StoreError."""

    def read(self, ranges: Sequence[BodyRange]) -> list[bytes | Unreadable]:
        """The bytes asked for, in order of ``ranges``; all of them, or why they cannot be had."""

    def close(self) -> None: ...
