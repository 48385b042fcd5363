"""Is it a page or file that cannot be read, or is it the disk, or us?"""

from __future__ import annotations

import errno
import sqlite3


class DamagedBody(ValueError):
    """It is not there, or not what was written."""


_PRIMARY = 0xFF
"""Bits of SQLite's extended error codes that have the primary one."""


def is_damage(error: OSError | sqlite3.Error) -> bool:
    """Whether what was asked for is damaged, so that asking for something else may succeed."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        return code is not None and code & _PRIMARY in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)
    return error.errno == errno.EIO
