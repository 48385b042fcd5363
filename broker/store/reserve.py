"""The reserve: a file that keeps disk space for the store, which other programs cannot take, until the disk is full.

On a full disk SQLite cannot even delete, as changes go into its log first. The store then cuts its reserve, piece by
piece, and goes on: settling and expiring messages takes little room, and frees room within the tables.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from broker.store.large import cut

T = TypeVar("T")

RESERVE_BYTES = 64 << 20
"""The size of the reserve: 16 MiB each for the log, its pages in the tables, and batches under way, and a margin."""
RESERVE_PART = 16
"""The reserve takes at most 1/16 of the file system."""
ROOM_TIMES = 3
"""The reserve is made only if this many times its size is free: room just given up is left to others."""

PIECES = 8
"""The reserve is given up in this many pieces, since other programs that fill the disk may take the first piece."""
LEAST_PIECE_BYTES = 256 << 10

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""The errors of a file system that cannot allocate space in advance."""
_CHUNK = bytes(1 << 20)


def reserve_bytes(total_bytes: int) -> int:
    """Return the size of the whole reserve on a file system of this size."""
    return min(RESERVE_BYTES, total_bytes // RESERVE_PART)


def is_full(error: BaseException) -> bool:
    """Whether an error means that nothing was written for want of room; a failed sync never counts as such."""
    if isinstance(error, sqlite3.Error):
        # SQLITE_IOERR_SHMSIZE means that the index of the log cannot grow.
        return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
    return isinstance(error, OSError) and error.errno == errno.ENOSPC


class Reserve:
    """The file `reserve` of a store, whose content is never read: only the disk space that it takes matters."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size_bytes = _allocated_bytes(path)
        """The disk space that the reserve still has; 0 if there is none."""

    def make(self, total_bytes: int, free_bytes: int) -> None:
        """Make the reserve complete, unless it is, or less than ROOM_TIMES its size is free on the disk.

        ``total_bytes`` and ``free_bytes`` are those of the file system.
        """
        size = reserve_bytes(total_bytes)
        if self.size_bytes >= size or free_bytes < size * ROOM_TIMES:
            return
        try:
            _allocate(self._path, size)
        except OSError as error:
            self._path.unlink(missing_ok=True)
            if error.errno not in _NO_ROOM:
                raise
        self.size_bytes = _allocated_bytes(self._path)

    def give_up(self, piece_bytes: int) -> bool:
        """Cut the reserve by ``piece_bytes``, to free disk space; return False if there is no reserve left."""
        if not self.size_bytes:
            return False
        self.size_bytes = max(0, self.size_bytes - piece_bytes)
        cut(self._path, self.size_bytes)
        return True

    def keep_free(self, free_bytes: int) -> None:
        """Cut the reserve by a piece if less than LEAST_PIECE_BYTES are free on the disk.

        Some work gets no error on a full disk, by which `lend_to` could tell that the work needs room.
        """
        if free_bytes < LEAST_PIECE_BYTES:
            self.give_up(self._piece_bytes)

    @property
    def _piece_bytes(self) -> int:
        return max(LEAST_PIECE_BYTES, self.size_bytes // PIECES)

    def lend_to(self, work: Callable[[], T]) -> T:
        """Do ``work``; while the disk is too full, cut the reserve by a piece and do ``work`` again.

        ``work`` must change nothing when it fails on a full disk, and must not retry a failed sync. Raises the error of
        ``work`` if no reserve is left.
        """
        piece = self._piece_bytes
        while True:
            try:
                return work()
            except (OSError, sqlite3.Error) as error:
                if not is_full(error) or not self.give_up(piece):
                    raise


def _allocated_bytes(path: Path) -> int:
    """Return the disk space that a file takes, 0 for none; a file with holes, such as a copy, may be longer."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    return found.st_blocks * 512


def _allocate(path: Path, size_bytes: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(handle, 0, size_bytes)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
        _fill(handle, size_bytes)
    finally:
        os.close(handle)


def _fill(handle: int, size_bytes: int) -> None:
    left = size_bytes
    while left:
        left -= os.write(handle, _CHUNK[:left])
