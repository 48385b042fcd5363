"""Numbers of logs (SQLite's WAL): a row of the database has the number of the last log.

The number shows whether database and log are from the same time, or one of the two is an older file. The row is in
table log_number, has a page of its own, and can be read without SQLite from the database file and the log.
"""

from __future__ import annotations

import sqlite3
import struct
from zlib import crc32

TABLE = "log_number"
_MAGIC = b"AMQm log"
_STAMP = struct.Struct("<8sQ")
_SUM = struct.Struct("<I")
_STAMP_BYTES = _STAMP.size + _SUM.size

_LEAF = 13
"""The first byte of a leaf page of a table with rowids."""
_FIRST_CELL = slice(8, 10)
_MOST_CELL_BYTES = 64


def stamp_of(number: int) -> bytes:
    """Return the content of the row of table log_number for this number of a log, with a checksum."""
    stamp = _STAMP.pack(_MAGIC, number)
    return stamp + _SUM.pack(crc32(stamp))


def number_of(stamp: bytes) -> int | None:
    """Return the number of a log in the content of the row of table log_number; None for damaged or other bytes."""
    if len(stamp) != _STAMP_BYTES or stamp[-_SUM.size :] != _SUM.pack(crc32(stamp[: -_SUM.size])):
        return None
    magic, number = _STAMP.unpack_from(stamp)
    return int(number) if magic == _MAGIC else None


def number_on(page: bytes) -> int | None:
    """Return the number of a log on a page of the database, read without SQLite; None if it has no intact row."""
    if not page or page[0] != _LEAF:
        return None
    cell = int.from_bytes(page[_FIRST_CELL])
    place = page.find(_MAGIC, cell, cell + _MOST_CELL_BYTES)
    return None if place < 0 else number_of(page[place : place + _STAMP_BYTES])


def number_in(connection: sqlite3.Connection) -> int | None:
    """Return the last log's number in the database; None if its row is missing or damaged. Raises sqlite3.Error."""
    row = connection.execute(f"SELECT stamp FROM {TABLE}").fetchone()
    return number_of(row[0]) if row is not None and isinstance(row[0], bytes) else None


def put_number(connection: sqlite3.Connection, number: int) -> None:
    connection.execute(f"REPLACE INTO {TABLE} (one, stamp) VALUES (1, ?)", (stamp_of(number),))


def root_in(connection: sqlite3.Connection) -> int:
    """Return the number of the database page that has the row of table log_number."""
    (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (TABLE,)).fetchone()
    return int(page)
