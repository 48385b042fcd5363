"""The slots of a ring, 32 bytes each, as a numpy array with a field for each number in a slot."""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy

from recording.ring_format import SLOT, SLOT_BYTES, TEXT, TRAFFIC

SLOT_TYPE: Final = numpy.dtype(
    [
        ("start_us", "<u8"),
        ("took_us", "<u4"),
        ("size_bytes", "<u4"),
        ("incoming", "<u4"),
        ("outgoing", "<u4"),
        ("count", "<u4"),
        ("kind", "u1"),
        ("outcome", "u1"),
        ("part", "u1"),
        ("zero", "u1"),
    ]
)

Slots = numpy.ndarray[Any, Any]
Span = tuple[int, int]
"""The places of a text record's slots: the first, which has the text's length, and the place after the last."""


def as_slots(data: bytes | memoryview) -> Slots:
    """Return ``data``, the bytes of a number of slots, as an array of slots, without a copy."""
    return numpy.frombuffer(data, SLOT_TYPE)


def text_spans(slots: Slots) -> list[Span]:
    """Return the spans of all text records that begin in ``slots``; the last may end beyond ``slots``.

    A slot inside of a text is never taken for the first slot of a record: the code TEXT, 255, is no byte of UTF-8.
    """
    found = []
    end = 0
    for head in numpy.flatnonzero(slots["kind"] == TEXT).tolist():
        if head >= end:
            end = head + 1 + -(-int(slots["size_bytes"][head]) // SLOT_BYTES)
            found.append((head, end))
    return found


def whole(slots: Slots, spans: list[Span]) -> int:
    """Return how many of ``slots`` there are up to the end of the last complete record; ``spans``: the text records."""
    return spans[-1][0] if spans and spans[-1][1] > len(slots) else len(slots)


def first_of(slots: Slots, spans: list[Span], count: int) -> tuple[Slots, list[Span]]:
    """Return the first ``count`` slots, which must be whole records, and the spans of text records among them."""
    return slots[:count], [span for span in spans if span[1] <= count]


def text_of(slots: Slots, span: Span) -> bytes:
    head, end = span
    return slots[head + 1 : end].tobytes()[: int(slots["size_bytes"][head])]


def text_slots(start_us: int, data: bytes) -> Slots:
    head = struct.pack(SLOT, start_us, 0, len(data), 0, 0, 0, TEXT, 0, 0)
    return as_slots(head + data + bytes(-len(data) % SLOT_BYTES))


def at_us(slots: Slots, clock_us: int | numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Return the time of each record's end in us of UTC; slots inside of a text get a meaningless time.

    ``clock_us``: UTC less the monotonic clock, for all slots or for each.
    """
    kinds = slots["kind"]
    took = numpy.where((kinds == TRAFFIC) | (kinds == TEXT), 0, slots["took_us"])
    return slots["start_us"].astype(numpy.int64) + clock_us + took


def records(slots: Slots, spans: list[Span]) -> numpy.ndarray[Any, Any]:
    """Return a mask of ``slots``: true for a slot that is a whole record, false for the slots of text (``spans``)."""
    mask = numpy.ones(len(slots), bool)
    for head, end in spans:
        mask[head:end] = False
    return mask
