"""What is left of the bodies of a segment when a page of them leads no further? Those before it.

SQLite gives a value as a whole, or not at all; a blob it gives piece by piece, and walks to each along the pages. Of
the damaged page itself anything may be read: of a segment without checksums, which would tell, nothing is left.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import accumulate, pairwise

from broker.store.checksums import is_index
from broker.store.damage import is_damage
from broker.store.message_index import checksums_in, read_index


def bounds_of(message_index: bytes) -> list[int]:
    """Where each body begins, and where the last one ends; large ones lie elsewhere."""
    return [0, *accumulate(0 if is_large else size for size, _, _, is_large in read_index(message_index))]


def left_of_bodies(connection: sqlite3.Connection, table: str, segment_id: int, message_index: bytes) -> bytes:
    """Of a row whose ``bodies`` cannot be read: whole bodies, from the first on."""
    if not is_index(segment_id, message_index) or checksums_in(message_index) is None:
        return b""
    left: list[bytes] = []
    try:
        with closing(connection.blobopen(table, "bodies", segment_id, readonly=True)) as blob:
            bounds = bounds_of(message_index)
            if bounds[-1] == len(blob):
                left.extend(blob.read(end - begin) for begin, end in pairwise(bounds))
    except sqlite3.Error as error:
        # SQLITE_ERROR: there is no such row any more, or no blob in it.
        if not is_damage(error) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
    return b"".join(left)
