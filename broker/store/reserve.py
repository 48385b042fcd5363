"""Room on the disk that nobody else can take, for when somebody has taken all the rest.

On a full disk SQLite cannot even delete: what it changes goes into its log first. The store then gives its reserve up,
piece by piece, and goes on: settlements, expiry and drain need little room, and what they free is used again.
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
"""The log, as much again in the tables when it is written there, and batches under way: each 16 MiB, and some."""
RESERVE_PART = 16
"""Of a small file system, this part."""
ROOM_TIMES = 3
"""It is made where so many times its size are free: what was just given up is not taken back from who needs it."""

PIECES = 8
"""Who is about to fill the disk may be faster, and get the first piece."""
LEAST_PIECE_BYTES = 256 << 10

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""A file system that cannot allocate."""
_CHUNK = bytes(1 << 20)


def reserve_bytes(total_bytes: int) -> int:
    """Of a file system of that size."""
    return min(RESERVE_BYTES, total_bytes // RESERVE_PART)


def is_full(error: BaseException) -> bool:
    """Nothing was written for want of room. A sync that fails is something else, whatever it says."""
    if isinstance(error, sqlite3.Error):
        # The second: the index of the log cannot grow.
        return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
    return isinstance(error, OSError) and error.errno == errno.ENOSPC


class Reserve:
    """A file without a use: nothing is ever read from it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size_bytes = _allocated_bytes(path)
        """What is left of it; 0: there is none."""

    def make(self, total_bytes: int, free_bytes: int) -> None:
        """Whole, unless it is, or there is not plenty of room."""
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
        """So much of it. False: there is none."""
        if not self.size_bytes:
            return False
        self.size_bytes = max(0, self.size_bytes - piece_bytes)
        cut(self._path, self.size_bytes)
        return True

    def keep_free(self, free_bytes: int) -> None:
        """A piece, for who would not be told that there is no room."""
        if free_bytes < LEAST_PIECE_BYTES:
            self.give_up(self._piece_bytes)

    @property
    def _piece_bytes(self) -> int:
        return max(LEAST_PIECE_BYTES, self.size_bytes // PIECES)

    def lend_to(self, work: Callable[[], T]) -> T:
        """Do ``work``, and again with more of the reserve given up, as long as there is no room for it.

        Only what changed nothing when it fails so may be done again: a sync must not.
        """
        piece = self._piece_bytes
        while True:
            try:
                return work()
            except (OSError, sqlite3.Error) as error:
                if not is_full(error) or not self.give_up(piece):
                    raise


def _allocated_bytes(path: Path) -> int:
    """Not its length: a copy may have holes."""
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
