"""Tells a damaged page or file from a failing disk, or from a bug."""

from __future__ import annotations

import errno
import sqlite3


class DamagedBody(ValueError):
    """The body is missing, or not as written."""


class DamagedIndex(Exception):
    """The messages of a segment cannot be known; says why."""


_PRIMARY = 0xFF
"""Bits of the primary code within SQLite's extended error codes."""
_READ = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)


def is_damage(error: OSError | sqlite3.Error) -> bool:
    """Whether only the requested data is damaged, so that other reads may succeed."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        return code is not None and (code & _PRIMARY == sqlite3.SQLITE_CORRUPT or code in _READ)
    return error.errno == errno.EIO
