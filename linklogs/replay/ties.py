"""Computes the offsets of clocks from differences between pairs of clocks. A clock is that of one run of a node."""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

Run = tuple[str, int]
"""A node, and one of its runs."""

NEAR_US: Final = 1_000_000
"""The time within which two routers see a connection between them come up."""
MOST_TIMES: Final = 50
"""The greatest number of events of one pair and kind that are compared: more events add no information."""


class ClockDifference(NamedTuple):
    """How far the second clock is ahead of the first, in us, as the median of a number of samples."""

    one: Run
    other: Run
    us: float
    samples: int


class NeighborChange(NamedTuple):
    """A neighbor that came or went, as recorded by the router at one end."""

    node: str
    run: int
    neighbor: str
    event: str
    at_us: int


@dataclass(slots=True)
class ClockTies:
    """Clocks tied together by differences between pairs.

    The first difference that ties two groups of clocks together counts, so the most certain differences are added
    first.
    """

    _root: dict[Run, tuple[Run, float]] = field(default_factory=dict)
    """For each clock, another clock of its group, and how far the first is ahead."""

    def add(self, differences: Iterable[ClockDifference]) -> None:
        """Add differences between clocks, those with the most samples first.

        A difference between two clocks that are tied together already is ignored.
        """
        for one, other, us, _ in sorted(differences, key=lambda each: (-each.samples, each)):
            one_root, one_us = self._of(one)
            other_root, other_us = self._of(other)
            if one_root != other_root:
                self._root[other_root] = one_root, us + one_us - other_us

    def are_one(self, runs: Iterable[Run]) -> bool:
        return len({self._of(run)[0] for run in runs}) <= 1

    def ahead_us(self) -> dict[Run, int]:
        """Return how far each clock is ahead of the middle clock of its group.

        A node counts once for the middle, with the clock of its last run.
        """
        parts: defaultdict[Run, dict[Run, float]] = defaultdict(dict)
        for run in sorted(self._root):
            root, us = self._of(run)
            parts[root][run] = us
        return {run: ahead for part in parts.values() for run, ahead in _centred(part).items()}

    def _of(self, run: Run) -> tuple[Run, float]:
        above, us = self._root.setdefault(run, (run, 0.0))
        while above != (further := self._root[above])[0]:
            above, us = further[0], us + further[1]
        self._root[run] = above, us
        return above, us


def seen_differences(seen: Iterable[NeighborChange]) -> list[ClockDifference]:
    """Return differences between clocks from neighbors that came and went, as recorded at both ends.

    No record says which event at one end is which at the other: the difference on which most pairs agree is taken. A
    difference of at most NEAR_US counts as 0.
    """
    by_end: defaultdict[tuple[str, str], defaultdict[int, list[NeighborChange]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for each in seen:
        by_end[each.node, each.neighbor][each.run].append(each)
    found = []
    for (node, neighbor), runs in sorted(by_end.items()):
        if node < neighbor and (neighbor, node) in by_end:
            found += list(_of_pair(runs, by_end[neighbor, node]))
    return found


def _of_pair(
    runs: Mapping[int, Sequence[NeighborChange]], others: Mapping[int, Sequence[NeighborChange]]
) -> Iterator[ClockDifference]:
    by_runs = {(run, other): _between(runs[run], others[other]) for run in runs for other in others}
    of_all = sorted(us for each in by_runs.values() for us in each)
    if not of_all:
        return
    most = _agreed(of_all, of_all)
    if most.samples == 1 and len(of_all) > 1:
        return
    for (run, other), each in by_runs.items():
        if each:
            own = _agreed(each, of_all)
            # Two runs that never met have a difference, too, so a difference counts only if several events agree.
            if own.samples > 1 or abs(own.us - most.us) <= NEAR_US:
                us = own.us if abs(own.us) > NEAR_US else 0.0
                yield ClockDifference((runs[run][0].node, run), (others[other][0].node, other), us, own.samples)


class _Agreed(NamedTuple):
    us: float
    samples: int


def _between(ones: Sequence[NeighborChange], others: Sequence[NeighborChange]) -> list[int]:
    found = []
    for event in {each.event for each in ones}:
        times = sorted(each.at_us for each in ones if each.event == event)[:MOST_TIMES]
        at_other = sorted(each.at_us for each in others if each.event == event)[:MOST_TIMES]
        found += [other - one for one in times for other in at_other]
    return sorted(found)


def _agreed(differences: Sequence[int], of_all: Sequence[int]) -> _Agreed:
    """Return the median of those ``differences`` that lie near each other, and their number: the largest such group.

    Of equally large groups, the one near most differences of all runs (``of_all``) counts, then the smallest one.
    """
    best = max(differences, key=lambda us: (len(_near(differences, us)), len(_near(of_all, us)), -abs(us)))
    near = _near(differences, best)
    return _Agreed(statistics.median(near), len(near))


def _near(differences: Sequence[int], us: int) -> Sequence[int]:
    return differences[bisect_left(differences, us - NEAR_US) : bisect_right(differences, us + NEAR_US)]


def _centred(ahead_us: Mapping[Run, float]) -> dict[Run, int]:
    last = {node: us for (node, _), us in sorted(ahead_us.items())}
    middle = statistics.median_low(last.values())
    return {run: round(us - middle) for run, us in ahead_us.items()}
