"""Is it a page or file that cannot be read, or is it the disk, or us?"""

from __future__ import annotations

import errno
import sqlite3


class DamagedBody(ValueError):
    """It is not there, or not what was written."""


class DamagedIndex(Exception):
    """What messages a segment has cannot be known; says why."""


_PRIMARY = 0xFF
"""Bits of SQLite's extended error codes that have the primary one."""
_READ = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)


def is_damage(error: OSError | sqlite3.Error) -> bool:
    """Whether what was asked for is damaged, so that asking for something else may succeed."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        return code is not None and (code & _PRIMARY == sqlite3.SQLITE_CORRUPT or code in _READ)
    return error.errno == errno.EIO
