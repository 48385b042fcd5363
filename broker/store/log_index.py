"""The index of SQLite's log, `store.db-shm`: the broker allocates the file early, and reads it after commits.

SQLite maps the index into memory. Touching a page of the index without room on the disk ends the process (SIGBUS).
SQLite writes to each page first, but some file systems allocate later, when other writers may have taken the room.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import NamedTuple

from broker.store.reserve import NOT_SUPPORTED

INDEX_BYTES = 128 << 10
"""Enough for four logs in a row, each as long as a log gets before its pages are moved into the tables."""


_HEADER = struct.Struct("=16xIIII8s")
"""The index header [the WAL-index format, 1.1]: frames, pages of the file, checksum of the last frame (2), salts."""
_PAGE = 4096


class LogState(NamedTuple):
    """The committed part of SQLite's log: its number of frames, the checksum of the last frame, and the log's salts."""

    frames: int
    checksum: bytes
    """The checksum in the last committed frame."""
    salts: bytes


class LogIndex:
    """The index of the log of an open database. Close this object after the database, for this reason:

    A process that closes a file loses all its locks on the file [fcntl(2)], SQLite's too: the next process to open the
    database would think the database unused, and cut the index off.
    """

    def __init__(self, database: Path) -> None:
        self._handle = os.open(database.with_name(f"{database.name}-shm"), os.O_RDWR | os.O_CLOEXEC)
        self._mapped: mmap.mmap | None = None

    def allocate(self) -> None:
        """Allocate INDEX_BYTES on the disk for the index, if the file system can. Raises OSError without room."""
        try:
            os.posix_fallocate(self._handle, 0, INDEX_BYTES)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise

    def state(self) -> LogState:
        """Return the log's state after the last commit of this process. Makes no system call, except the first time."""
        if self._mapped is None:
            self._mapped = mmap.mmap(self._handle, _PAGE, prot=mmap.PROT_READ)
        frames, _, one, other, salts = _HEADER.unpack_from(self._mapped)
        return LogState(frames, struct.pack(">II", one, other), salts)

    def close(self) -> None:
        if self._mapped is not None:
            self._mapped.close()
        os.close(self._handle)
