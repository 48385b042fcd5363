"""Numbers for the words of records: a message's outcome or event, and the side of a node that counts the message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy
import pyarrow

from recording.columns import DeliveryPart, RecordEvent, RecordKind, RecordOutcome

Numbers: TypeAlias = numpy.ndarray[Any, Any]

MOVED: Final = (RecordKind.DELIVERY.value, RecordKind.TRAFFIC.value, RecordKind.MESSAGE.value)
TOLD: Final = tuple(kind.value for kind in RecordKind if kind.value not in MOVED)

OUTCOMES: Final = tuple(outcome.value for outcome in RecordOutcome)
EVENTS: Final = (
    RecordEvent.ENQUEUED,
    RecordEvent.DEQUEUED,
    RecordEvent.EXPIRED,
    RecordEvent.DEAD_LETTERED,
    RecordEvent.REMOVED,
)
WHATS: Final = (*OUTCOMES, *(event.value for event in EVENTS))
"""The outcome of a delivery, or the event of a message in a queue."""
OTHER: Final = len(WHATS)
"""A word of a newer version."""
WHAT_BITS: Final = 4

FAILED: Final = tuple(
    OUTCOMES.index(outcome)
    for outcome in (
        RecordOutcome.REJECTED,
        RecordOutcome.RELEASED,
        RecordOutcome.MODIFIED,
        RecordOutcome.ABORTED,
        RecordOutcome.SENDER_LOST,
    )
)

PARTS: Final = tuple(part.value for part in DeliveryPart)
QUEUE_PART: Final = len(PARTS)
"""The part of a message in a queue."""

CAME, WENT, QUEUE, PAIR, ALL = range(5)
"""Sums by incoming link; by outgoing link; by queue; by both links, for failures; by run of a node."""
SIDES: Final = ("in", "out", "queue", "pair", "all")

END_US: Final = 1 << 53
"""The year 2255: beyond, dividing by a window is not exact any more, and further on no table has times."""
LARGEST: Final = 1 << 50
"""The limit of a sum in a record: above any real sum, and so low that adding up many cannot overflow."""
_NONE: Final = -1


def numbers(table: pyarrow.Table, name: str, null: int = 0) -> Numbers:
    """A column, with ``null`` in place of nulls."""
    if name not in table.column_names:
        return numpy.full(len(table), null, numpy.int64)
    column = table[name]
    found: Numbers = (column.fill_null(null) if column.null_count else column).to_numpy()
    return found


def words(table: pyarrow.Table, name: str, known: Sequence[str]) -> Numbers:
    """The place of each word in ``known``; -1 for null, and for any other word."""
    if name not in table.column_names:
        return numpy.full(len(table), _NONE, numpy.int64)
    column = table[name].combine_chunks()
    places = [known.index(word) if word in known else _NONE for word in column.dictionary.to_pylist()]
    indices = column.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
    found: Numbers = numpy.array([*places, _NONE], numpy.int64)[indices]
    return found
