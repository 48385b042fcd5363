"""SQLite maps the index of its log into memory. A page of it that has no place on the disk ends the process (SIGBUS).

It writes to each page before that, but where a file system finds the place later, others may be faster.
"""

from __future__ import annotations

import os
from pathlib import Path

from broker.store.reserve import NOT_SUPPORTED

INDEX_BYTES = 128 << 10
"""For four logs in a row, each as long as it gets before its pages go into the tables."""


def allocate_log_index(database: Path) -> None:
    """Of a database that is open. Raises OSError when there is no room."""
    handle = os.open(database.with_name(f"{database.name}-shm"), os.O_RDWR | os.O_CLOEXEC)
    try:
        os.posix_fallocate(handle, 0, INDEX_BYTES)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
    finally:
        os.close(handle)
