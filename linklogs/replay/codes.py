"""Numbers that stand for the words in records, such as outcomes, events and the side (in, out, queue) of a sum.

A column of numbers is summed faster than a column of words.
"""

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
"""The outcome of a delivery, or the event of a message in a queue, that each number stands for."""
OTHER: Final = len(WHATS)
"""The number of any other outcome or event, such as a word of a newer version; shown as null."""
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
"""The number in column ``part`` for a message that entered or left a queue, which is no part of a delivery."""

CAME, WENT, QUEUE, PAIR, ALL = range(5)
"""The sides of a sum: by incoming link, by outgoing link, by queue, by both links (failures), by run of a node."""
SIDES: Final = ("in", "out", "queue", "pair", "all")

END_US: Final = 1 << 53
"""The year 2255; records with a later time are left out.

Beyond, division by a window is not exact, and much later times have no place in the timestamps of tables.
"""
LARGEST: Final = 1 << 50
"""The limit to which a sum in a record is cut: above any real sum, and so low that adding up many cannot overflow."""
_NONE: Final = -1


def numbers(table: pyarrow.Table, name: str, null: int = 0) -> Numbers:
    """Return a column as an array of numbers; nulls, and a column that the table lacks, become ``null``."""
    if name not in table.column_names:
        return numpy.full(len(table), null, numpy.int64)
    column = table[name]
    found: Numbers = (column.fill_null(null) if column.null_count else column).to_numpy()
    return found


def words(table: pyarrow.Table, name: str, known: Sequence[str]) -> Numbers:
    """Return the index in ``known`` of each word of a column; -1 for null, for any other word, and for a missing
    column.
    """
    if name not in table.column_names:
        return numpy.full(len(table), _NONE, numpy.int64)
    column = table[name].combine_chunks()
    places = [known.index(word) if word in known else _NONE for word in column.dictionary.to_pylist()]
    indices = column.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
    found: Numbers = numpy.array([*places, _NONE], numpy.int64)[indices]
    return found
