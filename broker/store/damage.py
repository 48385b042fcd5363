"""Errors about damaged content of a store, and the test that tells damage from a failing disk or a bug."""

from __future__ import annotations

import errno
import sqlite3


class DamagedBody(ValueError):
    """The error of a read: the body of a message is missing, or not as written, so the message cannot be delivered."""


class DamagedIndex(Exception):
    """The error of a segment whose index is missing or damaged, so that none of its messages can be delivered."""


_PRIMARY = 0xFF
"""Bits of the primary code within SQLite's extended error codes."""
_READ = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)


def is_damage(error: OSError | sqlite3.Error) -> bool:
    """Whether an error of a read or write means only that a part of the file is damaged: other parts may be usable."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        return code is not None and (code & _PRIMARY == sqlite3.SQLITE_CORRUPT or code in _READ)
    return error.errno == errno.EIO
