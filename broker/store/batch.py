"""The broker's interface to its store: one batch of writes at a time, and reads of bodies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from broker.store.cause import Cause
from broker.store.space import Space


class StoreError(OSError):
    """The disk failed, or has files that must not be touched. The node ends: a failed sync is never retried."""


class QueueKind(StrEnum):
    QUEUE = "queue"
    SUBSCRIPTION = "subscription"


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A durable queue, or a durable subscription: then ``address`` is its filter.

    ``owner`` is the user who made the queue, None if unknown; ``used_at_s`` is when a link last attached or detached
    (Unix time, rounded down by the broker), 0 if unknown.
    """

    queue_id: int
    kind: QueueKind
    address: str
    container_id: str = ""
    link_name: str = ""
    owner: str | None = None
    used_at_s: int = 0


MessageRow = tuple[int, int, int, int | None, bytes | None]
"""(message_id, size_bytes, priority, expires_at_ms or None, body or None for a large body)."""

EntryRow = tuple[int, int, int]
"""(queue_id, message_id, delivery_count)."""

CauseRow = tuple[int, int, Cause]
"""(queue_id, message_id, cause of the move to this queue)."""

Mark = tuple[int, int]
"""The seen mark of (queue_id, priority)."""


@dataclass(slots=True)
class WriteBatch:
    """Changes written and synced together. Deletes only ever name rows of earlier batches."""

    queues: list[QueueRow] = field(default_factory=list)
    """New and changed rows: the last row of an id counts."""
    messages: list[MessageRow] = field(default_factory=list)
    entries: list[EntryRow] = field(default_factory=list)
    counts: dict[tuple[int, int], int] = field(default_factory=dict)
    causes: list[CauseRow] = field(default_factory=list)
    annotations: dict[tuple[int, int], bytes | None] = field(default_factory=dict)
    """Annotations added by consumers, by (queue_id, message_id), as an encoded section; None: deleted."""
    marks: dict[Mark, int] = field(default_factory=dict)
    archived: dict[int, list[int]] = field(default_factory=dict)
    forgotten_causes: dict[int, list[int]] = field(default_factory=dict)
    """queue_id -> message_ids, which are archived too."""
    dropped_messages: list[int] = field(default_factory=list)
    dropped_queues: list[int] = field(default_factory=list)
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    """(message_id, next piece of its large body), in order."""
    sealed: list[int] = field(default_factory=list)
    """Complete large bodies to be on disk before their rows."""
    finished: list[int] = field(default_factory=list)
    """Complete large bodies that need not survive."""
    unlinked: list[int] = field(default_factory=list)
    """Large bodies to delete, complete or not."""

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
    """Bytes of one body: a small body as a whole (``size_bytes`` at least its size), ``size_bytes`` of a large body.

    Each ``reader`` asks for a large body range by range: with the last range the checksum of the whole body is known.
    """

    message_id: int
    is_large: bool
    offset: int
    size_bytes: int
    reader: int = 0
    """Number of the consumer's link."""


@dataclass(frozen=True, slots=True)
class UnreadableBody:
    """Stands in place of a damaged body; ``why`` goes into a sentence."""

    message_id: int
    why: str


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """Messages ``first_id`` and on, in the bytes of FORMAT.md."""

    first_id: int
    message_index: bytes
    holdings: list[tuple[int, bytes]]
    """(queue_id, counts) of every queue with a message of the segment."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The content of a store, except bodies."""

    queues: list[QueueRow]
    segments: Iterator[StoredSegment]
    """In order of arrival. Read on demand, and all before the first commit."""
    causes: dict[tuple[int, int], Cause]
    """Causes by (queue_id, message_id)."""
    annotations: dict[tuple[int, int], bytes]
    """Annotations added by consumers, by (queue_id, message_id): an encoded section of message annotations."""
    message_count: int
    next_queue_id: int
    next_message_id: int
    """The first id that the store never had, or has forgotten altogether."""
    damages: list[str] = field(default_factory=list)
    """Sentences about parts that are left out, or will turn out unreadable. Complete when all segments were read."""


class Store(Protocol):
    """``load`` first, once. Then ``commit`` from one thread and ``read`` from one thread, which may be another."""

    def load(self) -> Inventory: ...

    def commit(self, batch: WriteBatch) -> None:
        """Write and sync; after a StoreError nothing of the batch may be promised."""

    def look(self) -> Space:
        """The room on the disk. Call from the thread of ``commit``; raises StoreError."""

    def read(self, ranges: Sequence[BodyRange]) -> list[bytes | UnreadableBody]:
        """The requested bytes, in order of ``ranges``; all of a range, or the reason why its body is unreadable."""

    def close(self) -> None: ...
