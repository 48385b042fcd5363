"""One process per data directory: a flock, which the kernel gives back whatever becomes of us."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from broker.store.batch import StoreError


class DirectoryLock:
    """Raises StoreError when another process holds the directory."""

    def __init__(self, directory: Path) -> None:
        self._handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._handle, 32).decode("ascii", "replace").strip()
            os.close(self._handle)
            raise StoreError(f"{directory} is in use by process {holder}") from None
        os.ftruncate(self._handle, 0)
        os.write(self._handle, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        os.close(self._handle)
