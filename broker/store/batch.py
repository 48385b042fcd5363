"""The interface between a broker and its store: batches of writes, reads of bodies, and the content at the start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from broker.store.cause import Cause
from broker.store.space import Space


class StoreError(OSError):
    """The disk failed, or an operation on a store was refused, since its files or its target do not allow it.

    A broker that gets the error ends: a failed sync is never retried.
    """


class QueueKind(StrEnum):
    QUEUE = "queue"
    SUBSCRIPTION = "subscription"


@dataclass(frozen=True, slots=True)
class QueueRow:
    """The row of a durable queue, or of a durable subscription of a topic: then ``address`` is its filter.

    ``owner`` is the user who made the queue; None if unknown, or if a node or an operator made it. ``used_at_s``, kept
    for queues under patterns only, is the Unix time of the last attach or detach of a link, too early by 1/100 of the
    queue's expiry at most; 0 if unknown.
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
"""(queue_id, message_id, delivery_count): a message in a queue."""

CauseRow = tuple[int, int, Cause]
"""(queue_id, message_id, cause of the move to this queue)."""

Mark = tuple[int, int]
"""(queue_id, priority): the key of a seen mark, the highest message id that consumers may have seen."""


@dataclass(slots=True)
class WriteBatch:
    """Changes of a store that are written and synced together. Deletes only ever name rows of earlier batches."""

    queues: list[QueueRow] = field(default_factory=list)
    """New and changed rows: the last row of an id counts."""
    messages: list[MessageRow] = field(default_factory=list)
    entries: list[EntryRow] = field(default_factory=list)
    """Messages put into queues."""
    counts: dict[tuple[int, int], int] = field(default_factory=dict)
    """Changed delivery counts, by (queue_id, message_id)."""
    causes: list[CauseRow] = field(default_factory=list)
    annotations: dict[tuple[int, int], bytes | None] = field(default_factory=dict)
    """Message annotations added by consumers, by (queue_id, message_id), as an encoded section.

    None deletes the annotations.
    """
    marks: dict[Mark, int] = field(default_factory=dict)
    archived: dict[int, list[int]] = field(default_factory=dict)
    """queue_id -> message_ids that leave the queue."""
    forgotten_causes: dict[int, list[int]] = field(default_factory=dict)
    """queue_id -> message_ids whose causes are deleted; the same messages are in ``archived``."""
    dropped_messages: list[int] = field(default_factory=list)
    """message_ids that no queue has any more."""
    dropped_queues: list[int] = field(default_factory=list)
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    """(message_id, next bytes of its large body), in order."""
    sealed: list[int] = field(default_factory=list)
    """message_ids of complete large bodies, which are synced before the batch's rows are written."""
    finished: list[int] = field(default_factory=list)
    """message_ids of complete large bodies that need not survive a restart: their files are closed without a sync."""
    unlinked: list[int] = field(default_factory=list)
    """message_ids of large bodies to delete, complete or not."""

    @property
    def has_rows(self) -> bool:
        """Whether the batch needs a transaction of the database, not only writes to the files of large bodies."""
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
    """A request for bytes of one body: all of a small body, or ``size_bytes`` of a large body from ``offset`` on.

    Each ``reader`` asks for a large body range by range, so that with the last range the checksum of the whole body is
    verified.
    """

    message_id: int
    is_large: bool
    offset: int
    size_bytes: int
    reader: int = 0
    """A number that identifies the consumer's link."""


@dataclass(frozen=True, slots=True)
class UnreadableBody:
    """The result of the read of a body that is damaged or missing; ``why`` is the reason, as a part of a sentence."""

    message_id: int
    why: str


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment as read when the broker starts: its messages have consecutive ids, from ``first_id`` on.

    ``message_index`` and the counts have the bytes of FORMAT.md.
    """

    first_id: int
    message_index: bytes
    holdings: list[tuple[int, bytes]]
    """(queue_id, counts) of each queue that has a message of the segment, with a count for each message."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The content of a store when a broker starts, except message bodies."""

    queues: list[QueueRow]
    segments: Iterator[StoredSegment]
    """Segments in order of arrival; read from the disk on demand, and all of them before the first commit."""
    causes: dict[tuple[int, int], Cause]
    """Causes by (queue_id, message_id)."""
    annotations: dict[tuple[int, int], bytes]
    """Annotations added by consumers, by (queue_id, message_id): an encoded section of message annotations."""
    message_count: int
    next_queue_id: int
    next_message_id: int
    """The first id for new messages: no message in the store has this id or a higher one."""
    damages: list[str] = field(default_factory=list)
    """Sentences about damaged content that is left out, or of which reads will fail.

    Complete when all segments were read.
    """


class Store(Protocol):
    """The files of a broker's stored messages, as the broker uses the files.

    Call ``load`` first, once; then ``commit`` from one thread, and ``read`` from one thread, which may be another.
    """

    def load(self) -> Inventory: ...

    def commit(self, batch: WriteBatch) -> None:
        """Write and sync the batch; after a StoreError no message of the batch may be accepted."""

    def look(self) -> Space:
        """Return a measure of the room on the store's disk. Call from the thread of ``commit``; raises StoreError."""

    def read(self, ranges: Sequence[BodyRange]) -> list[bytes | UnreadableBody]:
        """Return for each of ``ranges``, in their order, its bytes, or the reason why its body is unreadable."""

    def close(self) -> None: ...
