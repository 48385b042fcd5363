"""What the processes of a mesh take of the machine, sample after sample, and whether it is flat after the warm-up."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from mesh.deploy.control import ask
from mesh.deploy.workdir import SUPERVISOR, WRITER
from mesh_tests.live.memory import anonymous_bytes, resident_bytes
from mesh_tests.running_mesh import RunningMesh

RESIDENT, DESCRIPTORS, BLOCKS = "resident_bytes", "descriptors", "python_blocks"
WARM_UP_SHARE = 1 / 3
GROWTH_SHARE = 0.03
SMALL = {RESIDENT: 512 * 1024, DESCRIPTORS: 2, BLOCKS: 2_000}
"""Growth below these is not told from noise, also where it is more than ``GROWTH_SHARE`` of the level."""
LARGE_BLOCKS = 10_000
"""More blocks than these are not flat, however high the level is."""
WINDOWS = 10
"""What is in no use any more goes every few minutes, so of each window of the time the least value counts."""
LEAST_SAMPLES = 2 * WINDOWS
LEAST_RESTS = 6
TICKS_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sample:
    """``processes``: by the name of a process, its measures by their names; ``cpu_s`` is that since its start."""

    at_s: float
    processes: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Trend:
    """A measure of a process after the warm-up: the least value of each of ten windows of the time, and for blocks the
    value of each rest.

    ``level`` is the mean of these values, and ``growth`` what a straight line through them (least squares) rises by
    from the end of the warm-up to the end.
    """

    process: str
    measure: str
    level: float
    growth: float

    @property
    def allowed(self) -> float:
        allowed = max(GROWTH_SHARE * self.level, SMALL[self.measure])
        return min(allowed, LARGE_BLOCKS) if self.measure == BLOCKS else allowed

    @property
    def is_flat(self) -> bool:
        return self.growth <= self.allowed


class Sampler:
    """Looks at the supervisor, the writer of link logs and all nodes of a mesh."""

    def __init__(self, mesh: RunningMesh, nodes: Sequence[str]) -> None:
        self._mesh = mesh
        self._pids = {name: mesh.pid(name) for name in (SUPERVISOR, WRITER, *nodes)}

    def sample(self, at_s: float, *, is_rest: bool = False) -> Sample:
        """``is_rest``: collect unreachable objects before. Raises AssertionError if a process is not the one that it
        was at the start.
        """
        now = {name: self._mesh.pid(name) for name in self._pids}
        assert now == self._pids, f"the processes were {self._pids}, and are {now}: one of them has ended"
        measures = {name.strip("_"): self._measure(name, pid, is_rest) for name, pid in self._pids.items()}
        return Sample(round(at_s, 1), measures)

    def _measure(self, name: str, pid: int, is_rest: bool) -> dict[str, float]:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        cpu_s = (int(fields[11]) + int(fields[12])) / TICKS_S
        found = {"cpu_s": cpu_s, "anonymous_bytes": anonymous_bytes(pid)}
        if name == WRITER:
            # It has no control socket: nobody counts its objects.
            return {**found, RESIDENT: resident_bytes(pid), DESCRIPTORS: len(os.listdir(f"/proc/{pid}/fd"))}
        return {**found, **ask(self._mesh.control_socket(name), "memory", timeout_s=30.0, collect=is_rest)}


def trends(samples: Sequence[Sample], rests: Sequence[Sample]) -> list[Trend]:
    """Judge memory and descriptors by ``samples``, and blocks by ``rests``, the samples while no client was there.

    Raises ValueError if there are too few of them after the warm-up.
    """
    after, end_s = after_warm_up(samples), samples[-1].at_s
    resting = [each for each in rests if each.at_s >= end_s * WARM_UP_SHARE]
    if len(after) < LEAST_SAMPLES or len(resting) < LEAST_RESTS:
        raise ValueError(
            f"{len(after)} samples and {len(resting)} rests after the warm-up: expected {LEAST_SAMPLES} and "
            f"{LEAST_RESTS} or more"
        )
    windows = [after[len(after) * k // WINDOWS : len(after) * (k + 1) // WINDOWS] for k in range(WINDOWS)]
    found = []
    for process, measures in after[0].processes.items():
        for measure in [measure for measure in measures if measure in SMALL]:
            if measure == BLOCKS:
                values = [each.processes[process][measure] for each in resting]
            else:
                values = [min(each.processes[process][measure] for each in some) for some in windows]
            found.append(Trend(process, measure, *_line(values)))
    return found


def warm_up_s(samples: Sequence[Sample]) -> float:
    return samples[-1].at_s * WARM_UP_SHARE


def after_warm_up(samples: Sequence[Sample]) -> list[Sample]:
    return [each for each in samples if each.at_s >= warm_up_s(samples)]


def _line(values: Sequence[float]) -> tuple[float, float]:
    """The mean of ``values``, at equal distances in time, and the rise of the line of least squares over them."""
    middle, mean = (len(values) - 1) / 2, fmean(values)
    slope = sum((number - middle) * (value - mean) for number, value in enumerate(values))
    slope /= sum((number - middle) ** 2 for number in range(len(values)))
    return mean, slope * len(values)


def to_maps(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    return [asdict(each) for each in samples]


def from_maps(maps: Sequence[Mapping[str, Any]]) -> list[Sample]:
    return [Sample(**each) for each in maps]
