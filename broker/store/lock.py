"""Lets one process change a data directory at a time, by a flock, which the kernel releases when the process ends.

Readers of a store that no broker uses share the lock.

The directory itself is locked, since a file inside may be deleted. The file `lock` has the process id of the holder,
and is locked too, for programs that know no other lock.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack
from pathlib import Path

from broker.store.batch import StoreError

HeldBy = str | None
"""The id of the process that uses a store, as text, or UNKNOWN; None if no process does."""
UNKNOWN = "(its file `lock` was deleted)"


class DirectoryLock:
    """The exclusive lock of a data directory, held by a broker or a command that changes the store.

    Raises StoreError if another process holds a lock of the directory.
    """

    def __init__(self, directory: Path) -> None:
        self._handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            user = _user(self._handle)
            os.close(self._directory)
            os.close(self._handle)
            raise StoreError(f"{directory} is in use by {user}: stop it, or wait until it has ended") from None
        # The process id overwrites an old one, then the file is cut: were the file emptied first, a full disk might
        # have no room for the id.
        length = os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)
        os.ftruncate(self._handle, length)

    def release(self) -> None:
        os.close(self._directory)
        os.close(self._handle)


def hold_shared(directory: Path, stack: ExitStack) -> HeldBy:
    """Take a shared lock of the directory, which keeps brokers away until ``stack`` is closed; nothing is written.

    Return None if the lock is taken; if a process uses the store already, return its id without a lock.
    """
    itself = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, itself)
    path, handle = directory / "lock", None
    if path.exists():  # in a copy, which has no file `lock`, only the directory is locked
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, handle)
    try:
        for each in (itself, handle):
            if each is not None:
                fcntl.flock(each, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return UNKNOWN if handle is None else _holder(handle)
    return None


def _user(handle: int) -> str:
    """Return the present holder of a directory's lock in words; ``handle`` is the open file `lock`.

    A reader, with a shared lock, leaves the id of an earlier holder in the file.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return f"process {_holder(handle)}"
    if not _holder(handle):
        return "a process whose file `lock` was deleted"
    return "an `amqpmesh store` command"


def _holder(handle: int) -> str:
    return os.pread(handle, 32, 0).decode("ascii", "replace").partition("\n")[0]
