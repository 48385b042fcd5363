"""Numbers for the words of records: what became of a message, and on which side of a node it was counted."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy

from addressing.link_log import Event, Outcome, Part

Numbers: TypeAlias = numpy.ndarray[Any, Any]

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
