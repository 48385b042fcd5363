"""SQLite maps the index of its log into memory. A page of it that has no place on the disk ends the process (SIGBUS).

It writes to each page before that, but where a file system finds the place later, others may be faster.
"""

from __future__ import annotations

import os
from pathlib import Path

from broker.store.reserve import NOT_SUPPORTED

INDEX_BYTES = 128 << 10
"""For four logs in a row, each as long as it gets before its pages go into the tables."""


class LogIndex:
    """Of a database that is open. Close it after that.

    A process that closes a file loses all its locks on it [fcntl(2)], SQLite's too: whoever opens the database next
    would take it for unused, and cut the index off.
    """

    def __init__(self, database: Path) -> None:
        self._handle = os.open(database.with_name(f"{database.name}-shm"), os.O_RDWR | os.O_CLOEXEC)

    def allocate(self) -> None:
        """Raises OSError when there is no room."""
        try:
            os.posix_fallocate(self._handle, 0, INDEX_BYTES)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise

    def close(self) -> None:
        os.close(self._handle)
