"""Movements (deliveries, seconds of traffic, messages in queues) as numpy columns, made from pieces of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy
import pyarrow

from linklogs.moments import TimeSpan
from linklogs.replay.codes import END_US, LARGEST, MOVED, OTHER, PARTS, QUEUE_PART, WHATS, Numbers, numbers, words
from recording.columns import RecordKind

_TRAFFIC: Final = MOVED.index(RecordKind.TRAFFIC)
_MESSAGE: Final = MOVED.index(RecordKind.MESSAGE)
_NONE: Final = -1
_MOST: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Movements:
    """Movements as columns of equal length, with an element for each record.

    ``run``: the place of the node's run in `Facts.runs`, counted from 1; 0 for an unknown node. ``incoming``: the
    number of the incoming link, or of the queue for a message in a queue.
    """

    run: Numbers
    what: Numbers
    part: Numbers
    incoming: Numbers
    outgoing: Numbers
    at_us: Numbers
    messages: Numbers
    size_bytes: Numbers
    took_us: Numbers

    def __len__(self) -> int:
        return len(self.run)

    @classmethod
    def of(cls, table: pyarrow.Table, runs: Mapping[int | None, int], ahead_us: Numbers | int) -> Movements:
        """Make columns from the records of one node, with corrected times.

        ``runs``: the place of each run by number; None stands for all other runs. ``ahead_us``: how far the node's
        clock was ahead, for all records or at each. Records without a possible time are left out; impossible sizes and
        durations are cut to the range from 0 to LARGEST.
        """
        table, at_us = _in_time(table, ahead_us)
        kind, event = words(table, "kind", MOVED), words(table, "event", WHATS)
        outcome = words(table, "outcome", WHATS)
        is_message = kind == _MESSAGE
        what = numpy.where(outcome != _NONE, outcome, numpy.where(event != _NONE, event, OTHER))
        part = numpy.where(is_message, QUEUE_PART, numpy.maximum(words(table, "part", PARTS), 0))
        return cls(
            run=_places(numbers(table, "run"), runs),
            what=what,
            part=part,
            incoming=numpy.where(is_message, numbers(table, "queue"), numbers(table, "incoming")),
            outgoing=numbers(table, "outgoing"),
            # A traffic record loses 1 us of its time, the end of its second: this end could lie in the next window.
            at_us=at_us - (kind == _TRAFFIC),
            messages=numpy.clip(numbers(table, "count", 1), 1, _MOST),
            size_bytes=numpy.clip(numbers(table, "size_bytes"), 0, LARGEST),
            took_us=numpy.clip(numbers(table, "took_us"), 0, LARGEST),
        )

    def within(self, span: TimeSpan) -> Movements:
        if span.is_all:
            return self
        is_within = numpy.ones(len(self), bool)
        if span.from_us is not None:
            is_within &= self.at_us >= span.from_us
        if span.to_us is not None:
            is_within &= self.at_us < span.to_us
        return Movements(*(getattr(self, each.name)[is_within] for each in fields(Movements)))

    @classmethod
    def joined(cls, parts: Sequence[Movements]) -> Movements:
        if len(parts) == 1:
            return parts[0]
        return cls(*(numpy.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))


def _in_time(table: pyarrow.Table, ahead_us: Numbers | int) -> tuple[pyarrow.Table, Numbers]:
    """Return the records whose time is possible both before and after correction, and the corrected times."""
    told_us = numbers(table, "at_us", _NONE)
    at_us: Numbers = told_us - ahead_us
    if _can_be(told_us) and _can_be(at_us):
        return table, at_us
    is_in_time = (told_us >= 0) & (told_us < END_US) & (at_us >= 0) & (at_us < END_US)
    return table.filter(pyarrow.array(is_in_time)), at_us[is_in_time]


def _can_be(at_us: Numbers) -> bool:
    return bool(at_us.min(initial=0) >= 0 and at_us.max(initial=0) < END_US)


def _places(run: Numbers, runs: Mapping[int | None, int]) -> Numbers:
    """Return the place of each record's run, counted from 1; 0 for an unknown node.

    ``runs``: the places by number of the run, counted from 0. The function is fast for records that are all of one run,
    as they usually are.
    """
    other = runs.get(None, _NONE)
    if len(run) and run[0] == run[-1] and (run == run[0]).all():
        return numpy.full(len(run), runs.get(int(run[0]), other) + 1, numpy.int64)
    known, inverse = numpy.unique(run, return_inverse=True)
    places: Numbers = numpy.array([runs.get(int(each), other) + 1 for each in known], numpy.int64)[inverse]
    return places
