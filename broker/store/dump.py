"""Reads the messages in a store for operators, one by one, queue by queue, in the order of message ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from zlib import crc32

from addressing.topology.problem import hint_for
from broker.store.addressed import lead_bytes, published_to
from broker.store.batch import QueueRow, StoreError
from broker.store.cause import Cause
from broker.store.counts import counts_in
from broker.store.cut_bodies import bounds_of
from broker.store.large_reader import Written, damage_of
from broker.store.message_index import checksums_in, read_index
from broker.store.read_store import ReadStore

_START_BYTES = 1 << 19


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message in a queue of a store; ``body`` is the stored body or, for a large body, the path of its file."""

    queue: QueueRow
    message_id: int
    delivery_count: int
    size_bytes: int
    priority: int
    expires_at_ms: int | None
    cause: Cause | None
    body: bytes | Path
    is_damaged: bool
    """Whether the body is incomplete, or does not match its checksum."""

    @property
    def lead_bytes(self) -> int:
        """Number of bytes of ``body`` before the message; 0 unless the body is addressed (`broker.store.addressed`)."""
        return max(lead_bytes(self._start()), 0)

    @property
    def published_to(self) -> str | None:
        """The address to which a message was published that also went to a subscription with wildcards; else None."""
        return published_to(self._start())

    def _start(self) -> bytes:
        """Return the body, or of a large body the first bytes, which include any lead and delivery annotations."""
        if isinstance(self.body, bytes):
            return self.body
        try:
            with self.body.open("rb") as file:
                return file.read(_START_BYTES)
        except OSError:
            return b""


def stored_messages(store: ReadStore, address: str | None = None) -> Iterator[StoredMessage]:
    """Yield the messages of the queues and subscriptions at ``address``, or of all if None, queue by queue.

    Messages in unreadable segments are left out. Raises StoreError if no queue or subscription has this
    address.
    """
    causes = store.causes()
    rows = list(store.queues())
    wanted = [row for row in rows if address in (None, row.address)]
    if address is not None and not wanted:
        has = hint_for(address, dict.fromkeys(row.address for row in rows), title="the store has")
        raise StoreError(f"no queue or topic filter {address!r} in {store.directory}: {has}")
    for row in wanted:
        yield from _messages_of(store, row, causes)


def _messages_of(store: ReadStore, row: QueueRow, causes: dict[tuple[int, int], Cause]) -> Iterator[StoredMessage]:
    held = store.database.execute(
        "SELECT segment_id, counts FROM holding WHERE queue_id = ? ORDER BY segment_id", (row.queue_id,)
    )
    for segment_id, counts in held:
        segment = store.readable_segment(segment_id)
        if segment is None:
            continue
        message_index, bodies = segment.message_index, segment.bodies
        slots = read_index(message_index)
        sums = checksums_in(message_index)
        bounds = pairwise(bounds_of(message_index))
        for slot, ((begin, end), count) in enumerate(zip(bounds, counts_in(counts), strict=True)):
            size, priority, expires_at_ms, is_large = slots[slot]
            if count:
                message_id = segment_id + slot
                body = store.large_path(message_id) if is_large else bodies[begin:end]
                cause = causes.get((row.queue_id, message_id))
                is_damaged = _is_damaged(body, Written(size, sums[slot] if sums else 0))
                yield StoredMessage(row, message_id, count - 1, size, priority, expires_at_ms, cause, body, is_damaged)


def _is_damaged(body: bytes | Path, written: Written) -> bool:
    if isinstance(body, Path):
        return bool(damage_of(body, written))
    return len(body) != written.size_bytes or written.checksum not in (0, crc32(body))
