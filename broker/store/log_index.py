"""SQLite maps the index of its log into memory. A page of it that has no place on the disk ends the process (SIGBUS).

It writes to each page before that, but where a file system finds the place later, others may be faster.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import NamedTuple

from broker.store.reserve import NOT_SUPPORTED

INDEX_BYTES = 128 << 10
"""For four logs in a row, each as long as it gets before its pages go into the tables."""


_HEADER = struct.Struct("=16xIIII8s")
"""Of the index [the WAL-index format, 1.1]: frames, pages of the file, checksum of the last frame (2), salts."""
_PAGE = 4096


class LogState(NamedTuple):
    """What was committed to the log."""

    frames: int
    checksum: bytes
    """As the last frame says it."""
    salts: bytes


class LogIndex:
    """Of a database that is open. Close it after that.

    A process that closes a file loses all its locks on it [fcntl(2)], SQLite's too: whoever opens the database next
    would take it for unused, and cut the index off.
    """

    def __init__(self, database: Path) -> None:
        self._handle = os.open(database.with_name(f"{database.name}-shm"), os.O_RDWR | os.O_CLOEXEC)
        self._mapped: mmap.mmap | None = None

    def allocate(self) -> None:
        """Raises OSError when there is no room."""
        try:
            os.posix_fallocate(self._handle, 0, INDEX_BYTES)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise

    def state(self) -> LogState:
        """As the last commit of this process left it. Costs no system call."""
        if self._mapped is None:
            self._mapped = mmap.mmap(self._handle, _PAGE, prot=mmap.PROT_READ)
        frames, _, one, other, salts = _HEADER.unpack_from(self._mapped)
        return LogState(frames, struct.pack(">II", one, other), salts)

    def close(self) -> None:
        if self._mapped is not None:
            self._mapped.close()
        os.close(self._handle)
