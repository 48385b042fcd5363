"""Errors about damaged content of a store, and the difference between damage and a failing disk or a bug."""

from __future__ import annotations

import errno
import sqlite3


class DamagedBody(ValueError):
    """The body of a message is missing, or not as written: this message cannot be delivered."""


class DamagedIndex(Exception):
    """The index of a segment is unreadable, so none of its messages can be delivered; the message says why."""


_PRIMARY = 0xFF
"""Bits of the primary code within SQLite's extended error codes."""
_READ = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)


def is_damage(error: OSError | sqlite3.Error) -> bool:
    """Whether an error means that only the requested data is damaged, so that other reads may succeed."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        return code is not None and (code & _PRIMARY == sqlite3.SQLITE_CORRUPT or code in _READ)
    return error.errno == errno.EIO
