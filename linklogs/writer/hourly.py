"""Which records belong to the hour of a spool? A spool is of the hour of its first record, and so is its file."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy

from linklogs.naming import end_of_hour_us
from linklogs.writer.slots import Slots, Span, at_us, records

_BEFORE_START_US: Final = timedelta(days=30) // timedelta(microseconds=1)
_AFTER_START_US: Final = timedelta(days=3650) // timedelta(microseconds=1)


def sensible_us(at: int, run: int) -> int:
    """``at``; when the node started if no clock is that wrong. Of the same record always the same."""
    return at if -_BEFORE_START_US <= at - run <= _AFTER_START_US else run


def hour_ends_us(begun_us: int, run: int) -> int:
    return end_of_hour_us(sensible_us(begun_us, run))


def in_the_hour(slots: Slots, spans: list[Span], clock_us: int, begun_us: int | None, run: int, now_us: int) -> int:
    """How many slots of whole records are of it, before the first that is not.

    ``begun_us``: of the first record in the spool; None for an empty one, into which the first goes in any case.
    """
    first_us = int(at_us(slots[:1], clock_us)[0]) if begun_us is None else begun_us
    ends_us = hour_ends_us(first_us, run)
    # Most of the time the hour still runs, and no record can be of the next.
    if now_us < ends_us:
        return len(slots)
    starts = records(slots, spans)
    starts[[head for head, _ in spans]] = True
    late = starts & (at_us(slots, clock_us) >= ends_us)
    if begun_us is None:
        late[0] = False
    found = numpy.flatnonzero(late)
    return int(found[0]) if len(found) else len(slots)
