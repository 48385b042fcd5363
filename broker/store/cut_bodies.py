"""Reads those bodies of a segment with a damaged page that lie before the damage.

SQLite returns a value as a whole, or not at all; an open blob can be read body by body. The damaged page itself may
yield any bytes, so bodies without checksums, which would show the damage, are given up.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import accumulate, pairwise

from broker.store.checksums import is_index
from broker.store.damage import is_damage
from broker.store.message_index import checksums_in, read_index


def bounds_of(message_index: bytes) -> list[int]:
    """Return the offset of each body in a segment's bodies, and their end; large bodies, in files, take no bytes."""
    return [0, *accumulate(0 if is_large else size for size, _, _, is_large in read_index(message_index))]


def left_of_bodies(connection: sqlite3.Connection, table: str, segment_id: int, message_index: bytes) -> bytes:
    """Return the bodies before the damage, joined, of a segment whose ``bodies`` cannot be read as a whole.

    Empty if the index is damaged or has no checksums.
    """
    if not is_index(segment_id, message_index) or checksums_in(message_index) is None:
        return b""
    left: list[bytes] = []
    try:
        with closing(connection.blobopen(table, "bodies", segment_id, readonly=True)) as blob:
            bounds = bounds_of(message_index)
            if bounds[-1] == len(blob):
                left.extend(blob.read(end - begin) for begin, end in pairwise(bounds))
    except sqlite3.Error as error:
        # SQLITE_ERROR means that the row of the segment is gone, or has no blob: then no body is returned.
        if not is_damage(error) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
    return b"".join(left)
