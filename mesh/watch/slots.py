"""Reads slots of a ring: sums of equal deliveries and messages, and the rows of records with text.

Sans-IO. The layout is in `recording.ring_format`.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from mesh.watch.counts import DELAYED_LONG_US, DELAYED_US, DeliverySums
from recording.ring_format import DELIVERY, KINDS, SLOT, SLOT_BYTES, TEXT, TRAFFIC

_SLOT: Final = struct.Struct(SLOT)
_MESSAGES: Final = frozenset(KINDS) - {DELIVERY, TRAFFIC}

MOST_TEXT_BYTES: Final = 1 << 24
"""A text that is said to be longer is damage in the ring. The longest are names that a client chose, of 64 KiB each."""

Row = dict[str, Any]


class Alike(NamedTuple):
    """What equal deliveries have in common. ``outcome`` and ``part`` are codes of `recording.ring_format`."""

    incoming: int
    outgoing: int
    outcome: int
    part: int


@dataclass(slots=True)
class RingRecords:
    """The records in some slots, in parts whose order matters: ``rows`` and ``deliveries`` name links by numbers.

    A number is used for one link only, so sums may be added after all rows, as long as links that ended are known.
    ``messages``: counts by (code of the kind, number of the queue). ``rest``: the slots of a text that is not complete.
    """

    rows: list[tuple[int, Row]] = field(default_factory=list)
    """(time in us of UTC, columns) of each record with text, in order."""
    deliveries: dict[Alike, DeliverySums] = field(default_factory=dict)
    messages: dict[tuple[int, int], int] = field(default_factory=dict)
    rest: bytes = b""
    unreadable: int = 0
    """Number of slots that are of no known kind, or say that a text is longer than any, and of texts that are no row.
    """


_scan: Final = json.JSONDecoder().raw_decode
"""Returns the JSON value at an offset of a text, and the offset behind it: `json.loads` takes longer."""
_BETWEEN: Final = b",0,"
"""Between texts that are decoded together: where texts are damaged, the values between rows are not all this 0."""


def read_slots(data: bytes, clock_us: int) -> RingRecords:
    """Return the records in ``data``, which begins with a record. ``clock_us``: UTC less the monotonic clock."""
    found = RingRecords()
    deliveries, messages = found.deliveries, found.messages
    times: list[int] = []
    texts: list[bytes] = []
    unpack, at, end = _SLOT.unpack_from, 0, len(data)
    while at < end:
        start_us, took_us, size, incoming, outgoing, count, kind, outcome, part = unpack(data, at)
        at += SLOT_BYTES
        if kind in (DELIVERY, TRAFFIC):
            key = (incoming, outgoing, outcome, part)
            sums = deliveries.get(key)  # type: ignore[call-overload]
            if sums is None:
                sums = deliveries[Alike(*key)] = DeliverySums()
            sums.count += count
            sums.size_bytes += size
            bucket = took_us.bit_length()
            sums.latencies[bucket] = sums.latencies.get(bucket, 0) + count
            if took_us >= DELAYED_US:
                sums.delayed += count
                sums.delayed_long += count if took_us >= DELAYED_LONG_US else 0
            last_us = start_us + took_us if kind == DELIVERY else start_us
            sums.last_us = max(sums.last_us, last_us)
        elif kind == TEXT:
            slots = -(-size // SLOT_BYTES) * SLOT_BYTES
            if size > MOST_TEXT_BYTES:
                found.unreadable += 1
                continue
            if at + slots > end:
                found.rest = data[at - SLOT_BYTES :]
                break
            times.append(start_us + clock_us)
            texts.append(data[at : at + size])
            at += slots
        elif kind in _MESSAGES:
            of = kind, incoming
            messages[of] = messages.get(of, 0) + count
        else:
            found.unreadable += 1
    for sums in deliveries.values():
        sums.last_us += clock_us
    _add_rows(found, times, texts)
    return found


def _add_rows(found: RingRecords, times: list[int], texts: list[bytes]) -> None:
    rows = _together(texts)
    if rows is None:
        rows = [_row(text) for text in texts]
    for at_us, row in zip(times, rows, strict=True):
        if _is_row(row):
            found.rows.append((at_us, row))
        else:
            found.unreadable += 1


def _together(texts: list[bytes]) -> list[Any] | None:
    """Return the value of each text, decoded as one, which takes half of the time; None if any text is damaged.

    The rows share the names of their columns, so that each name is made, and hashed, once.
    """
    try:
        values, end = _scan(joined := f"[{_BETWEEN.join(texts).decode()}]", 0)
    except (ValueError, RecursionError):
        return None
    if end != len(joined) or len(values) != max(0, 2 * len(texts) - 1) or any(values[1::2]):
        return None
    found: list[Any] = values[::2]
    return found


def _row(text: bytes) -> Any:
    """Return the value of a text; None if it is damaged."""
    try:
        row, end = _scan(decoded := text.decode(), 0)
    except (ValueError, RecursionError):
        return None
    return row if end == len(decoded) else None


def _is_row(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("kind"), str)
