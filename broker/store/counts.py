"""The counts of a holding: which messages of a segment a queue has, and their delivery-counts. See FORMAT.md."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Sequence

COUNT_BYTES = 2
MOST_COUNT = 0xFFFF

_COUNTS = "SELECT counts FROM holding WHERE segment_id = ?"


def counts_in(counts: bytes) -> tuple[int, ...]:
    """Return the counts of a holding: for each message of a segment 0 if not in the queue, else delivery-count plus 1.

    Raises ValueError if ``counts`` has an impossible length.
    """
    if len(counts) % COUNT_BYTES:
        raise ValueError(f"the counts of a holding have {len(counts)} bytes, expected {COUNT_BYTES} for each message")
    return struct.unpack(f"<{len(counts) // COUNT_BYTES}H", counts)


def counts_of(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}H", *numbers)


def raised(counts: bytes, seen: Sequence[bool]) -> bytes:
    """Return the counts of a holding, one higher for each message that is in the queue and True in ``seen``."""
    pairs = zip(counts_in(counts), seen, strict=True)
    return counts_of([count + (is_seen and 0 < count < MOST_COUNT) for count, is_seen in pairs])


def needed_in(database: sqlite3.Connection, segment_id: int, slots: int) -> list[bool]:
    """Return for each message of a segment whether any queue has the message.

    Raises ValueError if a holding's counts do not fit the number of messages, ``slots``.
    """
    held = [counts_in(counts) for (counts,) in database.execute(_COUNTS, (segment_id,))]
    return [any(counts) for counts in zip((0,) * slots, *held, strict=True)]
