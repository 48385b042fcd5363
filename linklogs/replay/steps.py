"""Finds the steps of a node's clock while the node ran, from the node's own records.

A reading is the wall clock less the monotonic clock. Each file opens with a reading, and the writer notes another when
the clock was set: within a second. Readings are in the order of the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

STEP_US: Final = 50_000
"""The least change in us that counts as setting the clock; a smaller one is a correction by the time service."""
DRIFT: Final = 500e-6
"""The largest rate of correction by a time service: without a note of a change, a smaller difference is no step."""


@dataclass(frozen=True, slots=True)
class RunClockReading:
    """A reading of a node's clock; ``at_us`` is by the clock at that time, ``clock_us`` the wall clock less the
    monotonic clock.

    ``is_change``: the reading was noted because the clock was set.
    """

    at_us: int
    clock_us: int
    is_change: bool = False

    @property
    def monotonic_us(self) -> int:
        return self.at_us - self.clock_us


@dataclass(frozen=True, slots=True)
class ClockStep:
    """A step of a run's clock by ``by_us``; ``at_us`` is the time of the step by the clock as set at the end of the
    run.
    """

    at_us: int
    by_us: int


@dataclass(frozen=True, slots=True)
class ClockSteps:
    """The steps of the clock of one run.

    ``ahead_us``: by ``clock_us`` of each reading, how far the clock was then ahead of its state at the end of the run.
    All times of the run refer to the clock at the end: a clock is set to be right, and goes on like that.
    """

    steps: tuple[ClockStep, ...]
    ahead_us: Mapping[int, int]

    @property
    def first_us(self) -> int:
        """Return how far the clock was ahead, at the start of the run, of its state at the end."""
        return -sum(step.by_us for step in self.steps)


def steps_of(readings: Iterable[RunClockReading]) -> ClockSteps:
    ordered = _in_order(readings)
    changes: list[tuple[int, int]] = []
    added_us: dict[int, int] = {}
    total_us = 0
    for place, reading in enumerate(ordered):
        by_us = reading.clock_us - ordered[place - 1].clock_us if place else 0
        if abs(by_us) > _least_us(reading, ordered[max(0, place - 1)]):
            total_us += by_us
            changes.append((reading.at_us, by_us))
        added_us[reading.clock_us] = total_us
    steps, ahead_us = [], 0
    for at_us, by_us in reversed(changes):
        steps.append(ClockStep(at_us - ahead_us, by_us))
        ahead_us -= by_us
    return ClockSteps(tuple(reversed(steps)), {clock_us: added - total_us for clock_us, added in added_us.items()})


def _in_order(readings: Iterable[RunClockReading]) -> list[RunClockReading]:
    readings = set(readings)
    noted = {each.at_us: each.clock_us for each in readings if each.is_change}
    # In a file that begins with a change of the clock, the snapshot has the time by the new clock and the reading of
    # the old clock: such a reading is left out.
    kept = [
        each
        for each in readings
        if each.is_change or abs(noted.get(each.at_us, each.clock_us) - each.clock_us) <= STEP_US
    ]
    return sorted(kept, key=lambda each: (each.monotonic_us, each.is_change))


def _least_us(reading: RunClockReading, before: RunClockReading) -> float:
    if reading.is_change:
        return STEP_US
    return STEP_US + DRIFT * (reading.monotonic_us - before.monotonic_us)
