"""How much memory do processes use, and how much did they at most?"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

SAMPLE_S = 0.02


def resident_bytes(pid: int) -> int:
    return _status_bytes(pid, "VmRSS")


def anonymous_bytes(pid: int) -> int:
    """Without files that are mapped, such as the ring of a link log."""
    return _status_bytes(pid, "RssAnon")


def mapped_bytes(file: Path, pid: int | str = "self") -> int:
    """How much of the mappings of ``file`` in a process is resident."""
    # A process may have thousands of mappings, each with twenty lines: only those of the file are read.
    mappings, found, at = Path(f"/proc/{pid}/smaps").read_text(), 0, -1
    while (at := mappings.find(f" {file}\n", at + 1)) >= 0:
        rss_at = mappings.index("\nRss:", at) + len("\nRss:")
        found += int(mappings[rss_at : rss_at + 40].split()[0]) * 1024
    return found


def _status_bytes(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(f"{name}:"))


class MemoryWatch:
    """Samples processes for as long as the context is open. ``growth_bytes`` is the highest above ``idle_bytes``."""

    def __init__(self, pids: Mapping[str, int], idle_bytes: Mapping[str, int]) -> None:
        self._pids = pids
        self._idle_bytes = idle_bytes
        self._most = dict(idle_bytes)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory watch")

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._sample()

    def growth_bytes(self) -> dict[str, int]:
        return {name: self._most[name] - self._idle_bytes[name] for name in self._pids}

    def _run(self) -> None:
        while not self._is_over.wait(SAMPLE_S):
            self._sample()

    def _sample(self) -> None:
        for name, pid in self._pids.items():
            self._most[name] = max(self._most[name], resident_bytes(pid))
