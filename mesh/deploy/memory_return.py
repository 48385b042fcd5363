"""Gives memory back to the system after many links or connections have come and gone.

What a link leaves behind refers to itself, so that Python frees it in a full collection only, and a node without
traffic has no reason for one. The allocator of C keeps what is free between two pieces in use until it is asked to give
it back. Together they take some 35 ms for each ten thousand links in use, so they wait for a time without work, but not
for ever.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from recording.process_load import resident_bytes

LOOK_S: Final = 5.0
GROWTH_BYTES: Final = 16 << 20
"""The least growth since the start for which memory is given back, and the least success that counts as one."""
CALM_SHARE: Final = 0.1
"""A process is calm if it used less than this share of a CPU since the last look."""
PRESSING_BYTES: Final = 128 << 20
"""The least growth since memory was last given back for which also a process that is not calm gives memory back."""
LEAST_WORK_S: Final = 0.25
LEAST_WORK_RATIO: Final = 10
MOST_WORK_RATIO: Final = 160


def give_back() -> None:
    """Free all unreachable objects, and return whole pages of free memory to the system."""
    gc.collect()
    # Other C libraries than glibc have no such function; they return memory by themselves.
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class MemoryReturn:
    """Decides when the memory of this process is given back: when it has grown and is calm, after some work.

    A process that is never calm gives memory back when it has grown by half, and by ``PRESSING_BYTES``, since the last
    time.

    Links that go are work, and a search through links that stay takes time, so the next time needs ten times the CPU
    time that the last one took. Each time in vain doubles this ratio, up to ``MOST_WORK_RATIO``.
    """

    def __init__(
        self,
        resident_bytes: Callable[[], int] = resident_bytes,
        cpu_s: Callable[[], float] = time.process_time,
        give_back: Callable[[], None] = give_back,
    ) -> None:
        self._resident_bytes = resident_bytes
        self._cpu_s = cpu_s
        self._give_back = give_back
        self._start_bytes = self._last_bytes = resident_bytes()
        self._seen_s = cpu_s()
        self._due_s = 0.0
        """The CPU time of this process from which memory may be given back."""
        self._work_ratio = LEAST_WORK_RATIO

    def look(self) -> bool:
        """Give memory back if it is time; call this every ``LOOK_S`` seconds. Return whether memory was given back."""
        now_s = self._cpu_s()
        used_s, self._seen_s = now_s - self._seen_s, now_s
        size_bytes = self._resident_bytes()
        is_calm = used_s < CALM_SHARE * LOOK_S and size_bytes >= self._start_bytes + GROWTH_BYTES
        is_pressing = size_bytes >= self._last_bytes + max(PRESSING_BYTES, self._last_bytes // 2)
        if now_s < self._due_s or not (is_calm or is_pressing):
            return False
        self._give_back()
        self._seen_s, self._last_bytes = self._cpu_s(), self._resident_bytes()
        is_in_vain = size_bytes - self._last_bytes < GROWTH_BYTES
        self._work_ratio = min(2 * self._work_ratio, MOST_WORK_RATIO) if is_in_vain else LEAST_WORK_RATIO
        self._due_s = self._seen_s + max(LEAST_WORK_S, self._work_ratio * (self._seen_s - now_s))
        return True

    async def keep(self) -> None:
        """Look for as long as the task runs."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()
