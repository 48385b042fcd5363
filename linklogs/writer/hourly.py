"""Divides a node's records by hours: a spool, and its file, takes no record of a later hour than its first one.

A ring's record of a later hour goes into the next spool.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy

from linklogs.file_names import end_of_hour_us
from linklogs.writer.slots import Slots, Span, at_us, records

_BEFORE_START_US: Final = timedelta(days=30) // timedelta(microseconds=1)
_AFTER_START_US: Final = timedelta(days=3650) // timedelta(microseconds=1)


def sensible_us(at: int, run: int) -> int:
    """Return ``at``, or ``run``, the node's start, if ``at`` is over 30 days before ``run`` or ten years after.

    ``at`` is the time of a record in us since 1970; a wrong clock makes such times. The result depends on nothing else,
    so after a crash of the writer the file of a spool gets the same directory again.
    """
    return at if -_BEFORE_START_US <= at - run <= _AFTER_START_US else run


def hour_ends_us(begun_us: int, run: int) -> int:
    """Return when the hour of a spool ends, in us of UTC; ``begun_us`` is the time of the spool's first record."""
    return end_of_hour_us(sensible_us(begun_us, run))


def in_the_hour(slots: Slots, spans: list[Span], clock_us: int, begun_us: int | None, run: int, now_us: int) -> int:
    """Return how many of ``slots``, which are whole records, come before the first record of an hour after the spool's.

    ``begun_us``: the time of the first record in the spool; None for an empty spool, which takes the first record in
    any case, and whose hour is that of this record. ``now_us``: the present time.
    """
    first_us = int(at_us(slots[:1], clock_us)[0]) if begun_us is None else begun_us
    ends_us = hour_ends_us(first_us, run)
    # As long as the spool's hour is not over, which is most of the time, no record can be of a later hour.
    if now_us < ends_us:
        return len(slots)
    starts = records(slots, spans)
    starts[[head for head, _ in spans]] = True
    late = starts & (at_us(slots, clock_us) >= ends_us)
    if begun_us is None:
        late[0] = False
    found = numpy.flatnonzero(late)
    return int(found[0]) if len(found) else len(slots)
