"""Finds how far a node's clock was ahead at each record of a file: the offset to subtract from the record's time.

A run whose clock was never set has one offset, and its records are not examined. After a clock was set back, some times
occur twice in the file. Records of a kind are in the order of writing, so records before the largest step back are by
the old clock. Without a step back, records from the time of the writer's note (that the clock was set) on are taken to
be by the new clock, and earlier records by the old clock; a wrong choice leaves a time off by the change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy
import pyarrow

from linklogs.replay.codes import END_US, Numbers, numbers, words
from linklogs.replay.files import KINDS, ReplayFile
from recording.columns import RecordKind

LATE_US: Final = 5_000_000
"""A record up to this long before the writer's note of a set clock may be by the new clock: the note comes late."""
_NODE: Final = (RecordKind.NODE.value,)
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class RunClock:
    """The offsets of the clock of one run of a node, in us.

    ``ahead_us``: how far the clock was ahead of other nodes' clocks at the end of the run. ``was_us``: for each reading
    of the clock (linklogs/replay/steps.py), how far it was ahead of its own state at the end; empty if the clock was
    never set.
    """

    ahead_us: int
    was_us: Mapping[int, int] = field(default_factory=dict)


class OffsetChange(NamedTuple):
    """A change of a clock's offset by ``by_us``; ``at_us``: the time of the writer's note of the change, by the changed
    clock.
    """

    at_us: int
    by_us: int


@dataclass(slots=True)
class ClockOffsets:
    """The clock offsets for the records of a file, which are read in order, table by table.

    ``by_run_us``: the offset of each run at the beginning of the file. ``each_us``: the offset at each record that is
    read, or None if no clock was set during the file.
    """

    by_run_us: Mapping[int, int]
    each_us: Numbers | None = None
    _heard: int = 0

    def of(self, table: pyarrow.Table) -> Numbers | int:
        """Return the offset of each record of ``table``, the next table of the file; one number if all offsets are
        equal.
        """
        if self.each_us is not None:
            self._heard += len(table)
            return self.each_us[self._heard - len(table) : self._heard]
        if not self.by_run_us:
            return 0
        run = numbers(table, "run")
        if len(run) and run.min() == run.max():
            return self.by_run_us.get(int(run[0]), 0)
        return _by_run(run, self.by_run_us)


def ahead_of(file: ReplayFile, kinds: Sequence[str], clocks: Mapping[int, RunClock]) -> ClockOffsets:
    """Return the clock offsets for the records of these ``kinds`` in a file; ``clocks`` has the clock of each run of
    its node.

    Raises ArrowException for a damaged file.
    """
    by_run_us, switches = _begins(file, clocks)
    return ClockOffsets(by_run_us, _each(file, kinds, by_run_us, switches)[1] if switches else None)


def times_us(file: ReplayFile, clocks: Mapping[int, RunClock]) -> tuple[int | None, int | None]:
    """Return the times of a file's first and last record, corrected by the clock offsets; None if the file has no
    times.
    """
    first_us, last_us = file.times_us
    if not clocks or first_us is None or last_us is None:
        return first_us, last_us
    by_run_us, switches = _begins(file, clocks)
    if not switches:
        ahead_us = by_run_us.get(file.run or 0, 0)
        return first_us - ahead_us, last_us - ahead_us
    at_us, ahead = _each(file, sorted(KINDS), by_run_us, switches)
    right = (at_us - ahead)[(at_us >= 0) & (at_us < END_US)]
    return (int(right.min()), int(right.max())) if len(right) else (first_us, last_us)


def periods(at_us: Numbers, switches: Sequence[OffsetChange]) -> Numbers:
    """Return, for each of the records, how many changes of the clock (``switches``) came before the record.

    ``at_us``: the uncorrected times of one run's records of one kind, in the order of writing.
    """
    period = numpy.zeros(len(at_us), numpy.int64)
    for number, switch in enumerate(switches):
        places = numpy.flatnonzero(period == number)
        period[places[_is_after(at_us[places], switch)]] = number + 1
    return period


def _is_after(at_us: Numbers, switch: OffsetChange) -> Numbers:
    """Tell which records were written after a change of the clock (``switch``).

    Times by the old clock are before the switch; times by the new clock are after the switch, or at most LATE_US before
    the time at which the writer noted the switch.
    """
    is_after: Numbers = at_us >= switch.at_us - switch.by_us
    if switch.by_us > 0:
        return is_after
    late_us = min(LATE_US, -switch.by_us // 2)
    is_either = (at_us >= switch.at_us - late_us) & ~is_after
    return is_after | (is_either & (numpy.arange(len(at_us)) >= _turn(at_us, is_either, switch)))


def _turn(at_us: Numbers, is_either: Numbers, switch: OffsetChange) -> int:
    """Return the index of the first record by the new clock, among records that may be by the old or the new clock.

    The record after the largest step back in time is the first; without a step back, the first record from the time of
    ``switch`` on.
    """
    either = numpy.flatnonzero(is_either)
    back_us = at_us[either[:-1]] - at_us[either[1:]]
    if len(back_us) and back_us.max() > 0:
        return int(either[back_us.argmax() + 1])
    later = either[at_us[either] >= switch.at_us]
    return int(later[0]) if len(later) else len(at_us)


def _begins(file: ReplayFile, clocks: Mapping[int, RunClock]) -> tuple[dict[int, int], dict[int, list[OffsetChange]]]:
    """Return how far the clock of each run was ahead at the beginning of the file, and the changes of clocks during the
    file.
    """
    by_run_us = {run: clock.ahead_us for run, clock in clocks.items()}
    switches: dict[int, list[OffsetChange]] = {}
    for run, told in _told(file, clocks).items():
        by_run_us[run] += told[0].by_us
        found = [
            OffsetChange(new.at_us, new.by_us - old.by_us) for old, new in pairwise(told) if new.by_us != old.by_us
        ]
        if found:
            switches[run] = found
    return by_run_us, switches


def _told(file: ReplayFile, clocks: Mapping[int, RunClock]) -> dict[int, list[OffsetChange]]:
    """Return the readings of clocks in the file, in order, for each run whose clock was set.

    ``at_us`` is the time of the reading; ``by_us`` tells how far the clock was then ahead of its state at the run's
    end.
    """
    found: dict[int, list[OffsetChange]] = {}
    if not any(clock.was_us for clock in clocks.values()):
        return found
    for table in file.pieces(_NODE, ("kind", "at_us", "run", "clock_us")):
        columns = (
            table[name].to_pylist() if name in table.column_names else [] for name in ("at_us", "run", "clock_us")
        )
        for at_us, run, clock_us in zip(*columns, strict=False):
            if run in clocks and clock_us in clocks[run].was_us and at_us is not None:
                found.setdefault(run, []).append(OffsetChange(at_us, clocks[run].was_us[clock_us]))
    return found


def _each(
    file: ReplayFile, kinds: Sequence[str], by_run_us: Mapping[int, int], switches: Mapping[int, Sequence[OffsetChange]]
) -> tuple[Numbers, Numbers]:
    """Return two arrays: the recorded time of each record of these ``kinds``, and how far the clock was ahead then."""
    tables = [
        (words(table, "kind", kinds), numbers(table, "run"), numbers(table, "at_us", _NONE))
        for table in file.pieces(kinds, ("kind", "run", "at_us"))
    ]
    if not tables:
        return numpy.zeros(0, numpy.int64), numpy.zeros(0, numpy.int64)
    kind, run, at_us = (numpy.concatenate([table[place] for table in tables]) for place in range(3))
    ahead_us = _by_run(run, by_run_us)
    for set_run, of_run in switches.items():
        added_us = numpy.cumsum([0, *(switch.by_us for switch in of_run)])
        for place in range(len(kinds)):
            own = numpy.flatnonzero((run == set_run) & (kind == place))
            ahead_us[own] += added_us[periods(at_us[own], of_run)]
    return at_us, ahead_us


def _by_run(run: Numbers, by_run_us: Mapping[int, int]) -> Numbers:
    known, inverse = numpy.unique(run, return_inverse=True)
    found: Numbers = numpy.array([by_run_us.get(int(each), 0) for each in known], numpy.int64)[inverse]
    return found
