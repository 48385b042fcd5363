"""The writer's side of a node's ring, a file mapped into memory into which the node writes its records.

recording/ring_format.py has the layout.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy

from linklogs.writer.rows import Row
from linklogs.writer.slots import Slots, as_slots
from recording.ring_format import (
    CAPACITY_AT,
    CLOCK_AT,
    DROPPED_AT,
    HEADER_BYTES,
    MAGIC,
    NODE_AT,
    OVERWRITES_AT,
    RUN_AT,
    SLOT_BYTES,
    TAKEN_AT,
    WRITTEN_AT,
)
from recording.ring_pages import RingPages

SUFFIX: Final = ".ring"
DAMAGED: Final = ".damaged"
_NODE_COLUMNS: Final = ("role", "version", "topology")
_MAKING_S: Final = 5.0
"""A ring without a header, and without a lock, that is older than this counts as damaged: its node is dead."""


class RingDamaged(Exception):
    """A ring is damaged; the message names the file, the content found and the content expected."""


class RingNotKept(Exception):
    """The node overwrites the oldest records of the ring: nobody is to take records out and keep them."""


class RingNotReady(Exception):
    """The ring has no header yet, since a node is making the ring; the writer tries again later."""


@dataclass(frozen=True, slots=True)
class RingOwner:
    """The node that writes a ring. ``run``: when the node started, in us of UTC; identifies the run.

    ``row``: the node's columns about itself, such as its role and version.
    """

    node: str
    run: int
    mesh: str
    row: Row


@dataclass(frozen=True, slots=True)
class RingCounts:
    """Counts in the header of a ring, since its node started: slots written and taken, and records dropped.

    Records are dropped when the ring has no room. ``clock_us`` is UTC less the monotonic clock, in us.
    """

    written: int
    taken: int
    dropped: int
    clock_us: int


class Ring:
    """A ring opened by the writer, which reads slots and sets the count of taken slots.

    Always: ``taken <= written <= taken + capacity``, or ``look`` raises RingDamaged.
    """

    def __init__(self, path: Path) -> None:
        """Open the ring at ``path``. Raises RingDamaged, RingNotReady, RingNotKept, or OSError."""
        self.path = path
        self._handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self.capacity, self.owner = _header(path, self._handle)
            self._bytes = HEADER_BYTES + self.capacity * SLOT_BYTES
            self._check_size()
            self._map: mmap.mmap = mmap.mmap(self._handle, self._bytes)
        except BaseException:
            os.close(self._handle)
            raise
        # Each number of the header is read and written as one word, since the node reads and writes the header, too.
        self._words: numpy.ndarray[Any, Any] = numpy.frombuffer(self._map, "<u8", HEADER_BYTES // 8)
        self._written = 0
        self._pages = RingPages(self._map, self.capacity, self._word(TAKEN_AT))

    def look(self) -> RingCounts:
        """Read the counts in the ring's header. Raises RingDamaged for impossible counts."""
        self._check_size()
        written, taken, dropped, clock = (self._word(at) for at in (WRITTEN_AT, TAKEN_AT, DROPPED_AT, CLOCK_AT))
        if not (taken <= written and self._written <= written <= taken + self.capacity):
            raise RingDamaged(
                f"{self.path}: {written} slots written and {taken} taken, {self._written} written before, "
                f"expected at most {self.capacity} slots not taken yet, and no count below an earlier count"
            )
        self._written = written
        return RingCounts(written, taken, dropped, clock - (clock >> 63 << 64))

    def read(self, first: int, count: int) -> Slots:
        """Return a copy of ``count`` slots from number ``first`` on; slots are numbered from 0 at the node's start."""
        begin = first % self.capacity
        end = begin + count
        # The slots are copied as bytes: numpy would copy each number of a slot separately.
        data = self._slice(begin, min(end, self.capacity)) + self._slice(0, max(0, end - self.capacity))
        return as_slots(data)

    def advance(self, taken: int) -> None:
        """Set the count of taken slots: the node may now overwrite all slots before number ``taken``.

        Their pages leave the resident memory of this process.
        """
        self._words[TAKEN_AT // 8] = taken
        self._pages.let_go(taken)

    def is_abandoned(self) -> bool:
        """Whether no node holds the ring's lock: the node of the ring has ended."""
        return _is_free(self._handle)

    def close(self) -> None:
        del self._words
        self._map.close()
        os.close(self._handle)

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)
        self.close()

    def _slice(self, begin: int, end: int) -> bytes:
        return self._map[HEADER_BYTES + begin * SLOT_BYTES : HEADER_BYTES + end * SLOT_BYTES]

    def _word(self, at: int) -> int:
        return int(self._words[at // 8])

    def _check_size(self) -> None:
        # Check the file's size before a read: a read beyond the end of the mapped file would raise a signal that ends
        # the process, not an exception.
        size = os.fstat(self._handle).st_size
        if size < self._bytes:
            raise RingDamaged(
                f"{self.path}: the ring has {size} bytes, expected {self._bytes} for {self.capacity} slots, or more"
            )


def put_aside(path: Path) -> None:
    """Rename a damaged ring to end with `.damaged`: no writer reads the ring again, and people can inspect it."""
    with suppress(FileNotFoundError):
        path.rename(path.with_name(path.name + DAMAGED))


def _header(path: Path, handle: int) -> tuple[int, RingOwner]:
    head = os.pread(handle, HEADER_BYTES, 0)
    if head[: len(MAGIC)] != MAGIC:
        if not head.strip(b"\0") and _may_be_made(handle):
            raise RingNotReady(path)
        raise RingDamaged(
            f"{path}: begins with {head[: len(MAGIC)]!r}, expected {MAGIC!r}, with which each ring begins"
        )
    if len(head) < HEADER_BYTES:
        raise RingDamaged(f"{path}: expected a ring's header of {HEADER_BYTES} bytes, got {len(head)}")
    if struct.unpack_from("<Q", head, OVERWRITES_AT)[0]:
        raise RingNotKept(path)
    capacity, run = (struct.unpack_from("<Q", head, at)[0] for at in (CAPACITY_AT, RUN_AT))
    if not 0 < capacity < 1 << 40 or not 0 < run < 1 << 63:
        raise RingDamaged(
            f"{path}: expected a capacity from 1 to below 2^40 slots, and a start from 1 to below 2^63 us, "
            f"got {capacity} slots and {run} us"
        )
    return capacity, _owner(path, run, head[NODE_AT:].rstrip(b"\0"))


def _owner(path: Path, run: int, data: bytes) -> RingOwner:
    try:
        said = json.loads(data)
        node, mesh = str(said["node"]), str(said.get("mesh", ""))
        (node + mesh).encode()
    except (ValueError, KeyError, TypeError, AttributeError):
        said, node = None, ""
    if not node:
        raise RingDamaged(f"{path}: expected a header with a JSON object that names a node, got {data[:60]!r}")
    return RingOwner(node, run, mesh, {name: str(said[name]) for name in _NODE_COLUMNS if said.get(name) is not None})


def _may_be_made(handle: int) -> bool:
    return not _is_free(handle) or time.time() - os.fstat(handle).st_mtime < _MAKING_S


def _is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(handle, fcntl.LOCK_UN)
    return True
