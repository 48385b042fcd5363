"""Reads the resources of processes from /proc: CPU time of living threads, resident memory, and bytes written to disk,
each with what living descendants use, except for peaks of memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

PROC = Path("/proc")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
IDLE_SHARE = 0.05
IDLE_WINDOW_S = 0.5
IDLE_TIMEOUT_S = 60.0


class Meter:
    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)

    @property
    def count(self) -> int:
        return len(self._pids)

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(self._pids)

    def only(self, index: int) -> Meter:
        return Meter([self._pids[index]])

    def cpu_s(self) -> list[float]:
        """Return the CPU time in s of each process together with its living descendants, since they started. Threads
        and descendants that have ended are not counted.
        """
        parents = parents_of_all()
        return [sum(cpu_ns(each) for each in tree(pid, parents)) / 1e9 for pid in self._pids]

    def resident_bytes(self) -> list[int]:
        parents = parents_of_all()
        return [sum(resident_bytes(each) for each in tree(pid, parents)) for pid in self._pids]

    def written_bytes(self) -> int:
        """Return the number of bytes that all processes with their living descendants have written to disk; a process
        that may not be inspected counts as 0.
        """
        parents = parents_of_all()
        return sum(io_bytes(each, "write_bytes") for pid in self._pids for each in tree(pid, parents))

    def forget_peaks(self) -> None:
        for pid in self._pids:
            try:
                (PROC / str(pid) / "clear_refs").write_text("5")
            except OSError:
                continue

    def peak_bytes(self) -> list[int]:
        """Return the greatest resident memory of each process since `forget_peaks`, in bytes, without its
        descendants; 0 for a process that may not be inspected.
        """
        return [status_bytes(pid, "VmHWM") for pid in self._pids]

    def wait_idle(self) -> None:
        """Wait until the processes use less than 5 % of a CPU each, on average over half a second; give up waiting,
        without an error, after ``IDLE_TIMEOUT_S`` seconds.
        """
        deadline = time.monotonic() + IDLE_TIMEOUT_S
        before_s = sum(self.cpu_s())
        while time.monotonic() < deadline:
            time.sleep(IDLE_WINDOW_S)
            now_s = sum(self.cpu_s())
            if now_s - before_s < IDLE_SHARE * IDLE_WINDOW_S * self.count:
                return
            before_s = now_s


class NetCpu:
    """CPU time of processes since this object was made, less what the idle processes take in the same time."""

    def __init__(self, meter: Meter | None) -> None:
        self._meter = meter
        if meter is None:
            return
        # Work that an earlier measurement left over would pass for the CPU time of idle processes.
        meter.wait_idle()
        began_s, began_at = sum(meter.cpu_s()), time.monotonic()
        time.sleep(IDLE_WINDOW_S)
        self._from_s, self._from_at = sum(meter.cpu_s()), time.monotonic()
        self._idle_rate = (self._from_s - began_s) / (self._from_at - began_at)

    def us_each(self, count: int) -> float | None:
        """Return the time in us for each of ``count`` once the processes are idle; None if no processes are known.

        A value below zero says that the work is too small to measure beside what idle processes take.
        """
        if self._meter is None:
            return None
        self._meter.wait_idle()
        used_s = sum(self._meter.cpu_s()) - self._from_s - self._idle_rate * (time.monotonic() - self._from_at)
        return used_s * 1e6 / count


def check_pid(pid: int) -> int:
    if not (PROC / str(pid) / "task").exists():
        raise click.UsageError(f"--pid {pid}: there is no such process on this machine")
    return pid


def tree(pid: int, parents: dict[int, int]) -> Iterator[int]:
    yield pid
    for child, parent in parents.items():
        if parent == pid:
            yield from tree(child, parents)


def parents_of_all() -> dict[int, int]:
    """Return for each process of this machine, by its id, the id of its parent process."""
    found = {}
    for path in PROC.glob("[0-9]*/stat"):
        try:
            # The name of the process, in brackets, may contain any character, so the line is split behind the last
            # bracket.
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    return found


def cpu_ns(pid: int) -> int:
    """Return the CPU time in ns of the living threads of a process; threads that have ended are not counted."""
    total = 0
    for path in (PROC / str(pid) / "task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[0])
        except OSError:
            continue
    return total


def resident_bytes(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE_BYTES
    except OSError:
        return 0


def io_bytes(pid: int, key: str) -> int:
    try:
        lines = (PROC / str(pid) / "io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(key + ":")), 0)


def status_bytes(pid: int, key: str) -> int:
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":")), 0)
