"""The slots of a ring as a numpy array, with a field for each number."""

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
"""A text record: its first slot, which has the length, and the slot after its last."""


def as_slots(data: bytes | memoryview) -> Slots:
    """A view of the data: nothing is copied."""
    return numpy.frombuffer(data, SLOT_TYPE)


def text_spans(slots: Slots) -> list[Span]:
    """Spans of all text records that begin here; the last may end beyond.

    No UTF-8 has the byte that marks text records.
    """
    found = []
    end = 0
    for head in numpy.flatnonzero(slots["kind"] == TEXT).tolist():
        if head >= end:
            end = head + 1 + -(-int(slots["size_bytes"][head]) // SLOT_BYTES)
            found.append((head, end))
    return found


def whole(slots: Slots, spans: list[Span]) -> int:
    """The count of slots up to the end of the last complete record."""
    return spans[-1][0] if spans and spans[-1][1] > len(slots) else len(slots)


def first_of(slots: Slots, spans: list[Span], count: int) -> tuple[Slots, list[Span]]:
    """The first ``count`` slots, which are whole records, and the spans of text among them."""
    return slots[:count], [span for span in spans if span[1] <= count]


def text_of(slots: Slots, span: Span) -> bytes:
    head, end = span
    return slots[head + 1 : end].tobytes()[: int(slots["size_bytes"][head])]


def text_slots(start_us: int, data: bytes) -> Slots:
    head = struct.pack(SLOT, start_us, 0, len(data), 0, 0, 0, TEXT, 0, 0)
    return as_slots(head + data + bytes(-len(data) % SLOT_BYTES))


def at_us(slots: Slots, clock_us: int | numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """The end of each record in UTC; meaningless for slots inside text."""
    kinds = slots["kind"]
    took = numpy.where((kinds == TRAFFIC) | (kinds == TEXT), 0, slots["took_us"])
    return slots["start_us"].astype(numpy.int64) + clock_us + took


def records(slots: Slots, spans: list[Span]) -> numpy.ndarray[Any, Any]:
    """A mask of slots that are records by themselves."""
    mask = numpy.ones(len(slots), bool)
    for head, end in spans:
        mask[head:end] = False
    return mask
