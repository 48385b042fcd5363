"""What does a store hold? All at once, as tests like it."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from broker.store.batch import EntryRow, Inventory, QueueRow
from broker.store.cause import Cause
from broker.store.message_index import read_index


@dataclass(frozen=True)
class Held:
    queues: list[QueueRow]
    messages: list[tuple[int, int, int, int | None, bool]]
    """(message_id, size_bytes, priority, expires_at_ms or None, is_large)."""
    entries: list[EntryRow]
    causes: dict[tuple[int, int], Cause]
    annotations: dict[tuple[int, int], bytes]
    damages: list[str]


def held_by(inventory: Inventory) -> Held:
    """In order of arrival. Reads all of the inventory."""
    messages, entries = [], []
    for segment in inventory.segments:
        holdings = [(queue_id, struct.unpack(f"={len(counts) // 2}H", counts)) for queue_id, counts in segment.holdings]
        for slot, about in enumerate(read_index(segment.message_index)):
            message_id = segment.first_id + slot
            having = [(queue_id, message_id, counts[slot] - 1) for queue_id, counts in holdings if counts[slot]]
            entries += having
            messages += [(message_id, *about)] if having else []
    assert inventory.message_count >= len(messages)
    return Held(inventory.queues, messages, entries, inventory.causes, inventory.annotations, inventory.damages)
