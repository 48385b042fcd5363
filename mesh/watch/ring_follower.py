"""Reads a node's ring beside the link log writer, without a mark in the ring: neither node nor writer notices it.

The node overwrites a slot once the writer has taken the slot, whether this reader has read it or not. So a reader that
is more than a whole ring behind has missed slots, which `read` counts.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from recording.ring_format import (
    AHEAD_PART,
    BEAT_AT,
    CAPACITY_AT,
    CLOCK_AT,
    DROPPED_AT,
    HEADER_BYTES,
    MAGIC,
    NODE_AT,
    OVERWRITES_AT,
    RUN_AT,
    SLOT_BYTES,
    WRITTEN_AT,
)
from recording.ring_pages import RingPages

AT_ONCE_SLOTS: Final = 1 << 16
"""The most slots that one `read` returns: 2 MiB."""
_ABOUT: Final = ("mesh", "role", "version", "topology")


class RingUnreadable(Exception):
    """The file is not a ring that can be read; the message names the file, the content found and the one expected."""


@dataclass(frozen=True, slots=True)
class RingNode:
    """The node that writes a ring, and the run of the node that began at ``run_us``, in us of UTC."""

    name: str
    run_us: int
    mesh: str
    role: str
    version: str
    topology: str


@dataclass(frozen=True, slots=True)
class RingSlots:
    """Slots of a ring, in the order in which the node wrote them, and the header's words at the time of the read.

    ``missed``: number of earlier slots that the node overwrote before this reader came to them. ``clock_us``: UTC less
    the monotonic clock. ``dropped``: records that the node lost, ever, for want of room. ``is_last``: the node had
    written no more slots.
    """

    data: bytes
    missed: int
    clock_us: int
    dropped: int
    is_last: bool


class RingFollower:
    """Follows one ring from its first slot, or from slot number ``position`` on."""

    def __init__(self, path: Path, position: int = 0) -> None:
        """Open the ring at ``path``. Raises RingUnreadable, or OSError."""
        self.path = path
        self.position = position
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            head = os.pread(self._handle, HEADER_BYTES, 0)
            if head[: len(MAGIC)] != MAGIC or len(head) < HEADER_BYTES:
                raise RingUnreadable(f"{path}: begins with {head[: len(MAGIC)]!r}, expected {MAGIC!r}")
            self._capacity = _word(head, CAPACITY_AT)
            self.node = _node_of(path, head)
            size, wanted = os.fstat(self._handle).st_size, HEADER_BYTES + self._capacity * SLOT_BYTES
            if not 0 < self._capacity < 1 << 40 or size < wanted:
                raise RingUnreadable(f"{path}: has {size} bytes, expected {wanted} for {self._capacity} slots, or more")
            self._map = mmap.mmap(self._handle, wanted, prot=mmap.PROT_READ)
        except BaseException:
            os.close(self._handle)
            raise
        self._pages = RingPages(self._map, self._capacity, position)
        ahead = self._capacity // AHEAD_PART if _word(head, OVERWRITES_AT) else _AHEAD_SLOTS
        self._safe_slots = self._capacity - ahead
        """Most slots from a position on that the node has surely not written anew."""

    def read(self) -> RingSlots:
        """Return the next slots, AT_ONCE_SLOTS at most.

        A ring ends with a whole record whenever the node publishes slots, so a read that is not the last of a ring may
        end within a record; the caller keeps the rest for the next read.
        """
        written = _word(self._map, WRITTEN_AT)
        first = self.position
        missed = self._behind(written)
        if missed:
            # Only the count of written slots is sure to be a border between records.
            first = written
        count = min(written - first, AT_ONCE_SLOTS)
        data = self._copy(first % self._capacity, count)
        late = self._behind(_word(self._map, WRITTEN_AT))
        if late and not missed:
            # The node came round while the slots were copied.
            first = _word(self._map, WRITTEN_AT)
            missed, count, data = first - self.position, 0, b""
        self.position = first + count
        self._pages.let_go(self.position)
        clock = _word(self._map, CLOCK_AT)
        return RingSlots(
            data,
            missed,
            clock - (clock >> 63 << 64),
            _word(self._map, DROPPED_AT),
            self.position >= _word(self._map, WRITTEN_AT),
        )

    def beat_us(self) -> int:
        """Return when the node last wrote its clock, in us of the monotonic clock; 0 if the node never did."""
        return _word(self._map, BEAT_AT)

    def is_abandoned(self) -> bool:
        """Whether no node holds the lock of the ring: the node of the ring has ended."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(self._handle, fcntl.LOCK_UN)
        return True

    def close(self) -> None:
        self._map.close()
        os.close(self._handle)

    def _behind(self, written: int) -> int:
        """Return how many slots from the present position on may be overwritten, when ``written`` slots are written.

        The node writes slots before it counts them, so the slots of one more record may be new already.
        """
        return written - self.position if written - self.position > self._safe_slots else 0

    def _copy(self, begin: int, count: int) -> bytes:
        end = begin + count
        return self._slice(begin, min(end, self._capacity)) + self._slice(0, max(0, end - self._capacity))

    def _slice(self, begin: int, end: int) -> bytes:
        return self._map[HEADER_BYTES + begin * SLOT_BYTES : HEADER_BYTES + end * SLOT_BYTES]


_AHEAD_SLOTS: Final = 4096
"""The most slots that a node writes before it counts them, such as a text of 128 KiB, or the sums of a second, where
the writer of link logs takes the slots."""


def _word(memory: bytes | mmap.mmap, at: int) -> int:
    found: int = struct.unpack_from("<Q", memory, at)[0]
    return found


def _node_of(path: Path, head: bytes) -> RingNode:
    text = head[NODE_AT:].rstrip(b"\0")
    try:
        said = json.loads(text)
        name = str(said["node"])
        about = {key: str(said.get(key, "")) for key in _ABOUT}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RingUnreadable(f"{path}: expected a JSON object that names a node, got {text[:60]!r}") from None
    return RingNode(name, _word(head, RUN_AT), **about)
