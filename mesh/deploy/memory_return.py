"""Gives memory back to the system after many links or connections have come and gone.

What a link leaves behind refers to itself, so that Python frees it in a full collection only, and a node without
traffic has no reason for one. The allocator of C keeps what is free between two pieces in use until it is asked to give
it back. Both take milliseconds for each ten thousand links, so they wait for a time without work.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

LOOK_S: Final = 5.0
GROWTH_BYTES: Final = 16 << 20
"""The least growth, since the start or since memory was last given back, for which the work is done."""
CALM_SHARE: Final = 0.1
"""A process is calm if it used less than this share of a CPU since the last look."""
_STATM: Final = Path("/proc/self/statm")


def resident_bytes() -> int:
    return int(_STATM.read_text().split()[1]) * resource.getpagesize()


def give_back() -> None:
    """Free all unreachable objects, and return whole pages of free memory to the system."""
    gc.collect()
    # Other C libraries than glibc have no such function; they return memory by themselves.
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class MemoryReturn:
    """Decides when the memory of this process is given back: once after growth, when the process is calm.

    The next time needs another growth by ``GROWTH_BYTES``: memory that is in use is not looked through again and again.
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
        self._base_bytes = resident_bytes()
        self._used_s = cpu_s()

    def look(self) -> bool:
        """Give memory back if it is time; call this every ``LOOK_S`` seconds. Return whether memory was given back."""
        used_s, self._used_s = self._cpu_s() - self._used_s, self._cpu_s()
        size_bytes = self._resident_bytes()
        # Memory that went by itself may come again before a growth counts.
        self._base_bytes = min(self._base_bytes, size_bytes)
        if used_s >= CALM_SHARE * LOOK_S or size_bytes < self._base_bytes + GROWTH_BYTES:
            return False
        self._give_back()
        self._base_bytes, self._used_s = self._resident_bytes(), self._cpu_s()
        return True

    async def keep(self) -> None:
        """Look for as long as the task runs."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()
