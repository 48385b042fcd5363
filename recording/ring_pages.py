"""Lets go of the pages of a mapped ring that a process is done with, so that its resident memory does not grow.

A ring is written, and read, from its first slot to its last, and then again from the first. Without this module, each
page that was once touched would stay in the resident memory of the process: 64 MiB for each ring after a while, though
little of the ring is in use at any time. The pages that are let go stay in the file, and in the system's cache of the
file, and come back when they are touched again.
"""

from __future__ import annotations

import mmap
from typing import Final

from recording.ring_format import HEADER_BYTES, SLOT_BYTES

LEAST_BYTES: Final = 256 * 1024
"""Fewer bytes are not let go at once: each time is a call of the system."""


class RingPages:
    """The pages of one ring, mapped as ``memory`` from a file, with room for ``capacity`` slots.

    ``position`` is the number of the slot, counted from the start of the ring, at which this process begins.

    The mapping has to be shared: the pages of a private one would lose their content.
    """

    def __init__(self, memory: mmap.mmap, capacity: int, position: int) -> None:
        self._memory = memory
        self._capacity = capacity
        self._kept_from = position

    def let_go(self, position: int) -> None:
        """Let go of the pages behind slot number ``position``, counted from the start of the ring, once they are many.

        Positions never go back.
        """
        count = position - self._kept_from
        if count * SLOT_BYTES < LEAST_BYTES:
            return
        begin, end = self._kept_from % self._capacity, position % self._capacity
        if count >= self._capacity:
            self._drop(0, self._capacity)
        elif begin < end:
            self._drop(begin, end)
        else:
            self._drop(begin, self._capacity)
            self._drop(0, end)
        self._kept_from = position

    def _drop(self, first: int, end: int) -> None:
        """Let go of the pages from that of slot ``first`` up to that of slot ``end``, which stays, as the header does.

        ``first`` and ``end`` are places in the ring.
        """
        begin_at = max(_page_of(first), mmap.PAGESIZE)
        end_at = len(self._memory) if end == self._capacity else _page_of(end)
        if begin_at < end_at:
            self._memory.madvise(mmap.MADV_DONTNEED, begin_at, end_at - begin_at)


def _page_of(slot: int) -> int:
    at = HEADER_BYTES + slot * SLOT_BYTES
    return at - at % mmap.PAGESIZE
