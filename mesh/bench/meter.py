"""Resources of the processes under load: CPU of all threads, resident memory. From /proc; children are included."""

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

    def only(self, index: int) -> Meter:
        return Meter([self._pids[index]])

    def cpu_s(self) -> list[float]:
        """CPU time of each process and its children, since the start of the process."""
        parents = parents_of_all()
        return [sum(cpu_ns(each) for each in tree(pid, parents)) / 1e9 for pid in self._pids]

    def resident_bytes(self) -> list[int]:
        parents = parents_of_all()
        return [sum(resident_bytes(each) for each in tree(pid, parents)) for pid in self._pids]

    def written_bytes(self) -> int:
        """Bytes that all processes have sent to the disk; 0 for processes of another user that we may not inspect."""
        parents = parents_of_all()
        return sum(io_bytes(each, "write_bytes") for pid in self._pids for each in tree(pid, parents))

    def forget_peaks(self) -> None:
        for pid in self._pids:
            try:
                (PROC / str(pid) / "clear_refs").write_text("5")
            except OSError:
                continue

    def peak_bytes(self) -> list[int]:
        """The highest resident memory since `forget_peaks`, without children."""
        return [status_bytes(pid, "VmHWM") for pid in self._pids]

    def wait_idle(self) -> None:
        """Wait until the processes are idle, or until ``IDLE_TIMEOUT_S`` if the processes never rest."""
        deadline = time.monotonic() + IDLE_TIMEOUT_S
        before_s = sum(self.cpu_s())
        while time.monotonic() < deadline:
            time.sleep(IDLE_WINDOW_S)
            now_s = sum(self.cpu_s())
            if now_s - before_s < IDLE_SHARE * IDLE_WINDOW_S * self.count:
                return
            before_s = now_s


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
    """Process id -> process id of the parent."""
    found = {}
    for path in PROC.glob("[0-9]*/stat"):
        try:
            # The process name, in brackets, may contain any character.
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    return found


def cpu_ns(pid: int) -> int:
    """CPU time of living threads. schedstat counts nanoseconds, without threads that have ended."""
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
