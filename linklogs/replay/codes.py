"""Numbers for the words of records: what became of a message, and on which side of a node it was counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy
import pyarrow

from addressing.link_log import Event, Kind, Outcome, Part

Numbers: TypeAlias = numpy.ndarray[Any, Any]

MOVED: Final = (Kind.DELIVERY.value, Kind.TRAFFIC.value, Kind.MESSAGE.value)
TOLD: Final = tuple(kind.value for kind in Kind if kind.value not in MOVED)

OUTCOMES: Final = tuple(outcome.value for outcome in Outcome)
EVENTS: Final = (Event.ENQUEUED, Event.DEQUEUED, Event.EXPIRED, Event.DEAD_LETTERED, Event.REMOVED)
WHATS: Final = (*OUTCOMES, *(event.value for event in EVENTS))
"""What became of a message: the outcome of a delivery, or the event of a message in a queue."""
OTHER: Final = len(WHATS)
"""A word of a newer version."""
WHAT_BITS: Final = 4

FAILED: Final = tuple(
    OUTCOMES.index(outcome)
    for outcome in (Outcome.REJECTED, Outcome.RELEASED, Outcome.MODIFIED, Outcome.ABORTED, Outcome.SENDER_LOST)
)

PARTS: Final = tuple(part.value for part in Part)
QUEUE_PART: Final = len(PARTS)
"""Of a message in a queue."""

CAME, WENT, QUEUE, PAIR, ALL = range(5)
"""By the link it came on; by that on which it went; by queue; by both links, of what failed; by run of a node."""
SIDES: Final = ("in", "out", "queue", "pair", "all")

END_US: Final = 1 << 53
"""The year 2255: beyond it dividing by a window is not exact any more, and some way further no table has times."""
LARGEST: Final = 1 << 50
"""What a record says of sums: more than any does, and still so little that adding up many cannot overflow."""
_NONE: Final = -1


def numbers(table: pyarrow.Table, name: str, null: int = 0) -> Numbers:
    """A column, with ``null`` where there is nothing."""
    if name not in table.column_names:
        return numpy.full(len(table), null, numpy.int64)
    column = table[name]
    found: Numbers = (column.fill_null(null) if column.null_count else column).to_numpy()
    return found


def words(table: pyarrow.Table, name: str, known: Sequence[str]) -> Numbers:
    """The place of each word in ``known``; -1 of null, and of any other."""
    if name not in table.column_names:
        return numpy.full(len(table), _NONE, numpy.int64)
    column = table[name].combine_chunks()
    places = [known.index(word) if word in known else _NONE for word in column.dictionary.to_pylist()]
    indices = column.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
    found: Numbers = numpy.array([*places, _NONE], numpy.int64)[indices]
    return found
