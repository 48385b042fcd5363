"""Writes a line to a file so that it is whole on the disk, or that the writer knows that it is not."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def write_whole(descriptor: int, line: bytes, path: Path) -> None:
    """Write ``line``, and wait until it is on the disk. Raises OSError, also if the disk takes only a part of it."""
    if os.write(descriptor, line) != len(line):
        # A disk that is nearly full takes what it has room for, and says so by the number of bytes only.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    os.fsync(descriptor)
