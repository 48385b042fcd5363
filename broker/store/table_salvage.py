"""Puts tables with damaged pages aside, and makes new tables with their readable rows.

A lost page of holdings takes the messages of a few segments out of their queues; the messages stay stored, since no
segment is deleted for want of a holding once a table was put aside. A lost page of seen marks may be about any queue:
the marks in the new table then make all messages of all queues count as seen by a consumer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import product
from typing import Any

from broker.store.aside import put_aside
from broker.store.damage import is_damage
from broker.store.lost_queues import holders, salvage_queues, stored_queues
from broker.store.schema import HOLDING, MARK, PUT_HOLDING, PUT_MARK
from broker.store.segment_tables import SegmentTables, salvage_segments
from broker.store.statements import Statements

_IS_HOLDING = (
    "typeof(queue_id) = 'integer' AND typeof(segment_id) = 'integer' AND typeof(counts) = 'blob' "
    "AND typeof(checksum) IN ('integer', 'null')"
)
_IS_MARK = " AND ".join(f"typeof({name}) = 'integer'" for name in ("queue_id", "priority", "seen_mark"))
_ALL_OF_A_HOLDING = "total(queue_id + segment_id + length(counts)) + total(checksum)"
PRIORITIES = range(10)
ALL_SEEN = (1 << 62) - 1

Key = tuple[int, int]
Row = tuple[Any, ...]


def put_damaged_aside(statements: Statements) -> list[str]:
    """Put the tables queue, holding, mark and segment aside if they are damaged; return sentences about losses."""
    found = salvage_queues(statements)
    if not _is_whole(statements.connection, "holding", f"{_ALL_OF_A_HOLDING}, total(NOT ({_IS_HOLDING}))"):
        found.append(_salvage_holdings(statements))
    if not _is_whole(statements.connection, "mark", f"total(queue_id + priority + seen_mark), total(NOT ({_IS_MARK}))"):
        found.append(_salvage_marks(statements))
    return found + salvage_segments(statements)


def _salvage_holdings(statements: Statements) -> str:
    connection = statements.connection
    queue_ids = (row.queue_id for row in stored_queues(connection))
    keys = product(sorted({*queue_ids, *holders(connection)}), _segment_ids(connection))
    rows = list(_readable(connection, "holding", ("queue_id", "segment_id", "counts", "checksum"), keys))
    aside = put_aside(statements, "holding", HOLDING, PUT_HOLDING, rows)
    lost = len(set(_segment_ids(connection)) - {segment_id for _, segment_id, *_ in rows})
    return f"table holding was damaged, and was renamed to {aside}: the messages of {lost} segments are not delivered"


def _salvage_marks(statements: Statements) -> str:
    ids = [row.queue_id for row in stored_queues(statements.connection)]
    rows: list[Row] = [(*key, ALL_SEEN) for key in product(ids, PRIORITIES)]
    aside = put_aside(statements, "mark", MARK, PUT_MARK, rows)
    return f"table mark was damaged, and was renamed to {aside}: every message counts as possibly delivered before"


def _is_whole(connection: sqlite3.Connection, table: str, columns: str) -> bool:
    """Whether a table is readable, and has no impossible rows; ``columns`` reads all values, and counts such rows."""
    try:
        _, strange = connection.execute(f"SELECT {columns} FROM {table}").fetchone()
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        return False
    return not strange


def _readable(
    connection: sqlite3.Connection, table: str, columns: tuple[str, ...], keys: Iterator[Key]
) -> Iterator[Row]:
    """Yield all readable rows of a damaged table of holdings; ``keys``, ascending, are those of rows that may exist.

    A scan ends at a damaged page, without the row before, which Python has not returned yet: key by key the rows after
    the scan are tried, until one is readable and a new scan begins.
    """
    select, ids = f"SELECT {', '.join(columns)} FROM {table} WHERE {_IS_HOLDING} AND", f"({columns[0]}, {columns[1]})"
    last: Key | None = (-(1 << 62), 0)
    while last is not None:
        try:
            for row in connection.execute(f"{select} {ids} > (?, ?) ORDER BY {columns[0]}, {columns[1]}", last):
                last = row[0], row[1]
                yield row
            return
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
        last, found = _first_readable(connection, f"{select} {ids} = (?, ?)", last, keys)
        yield from found


def _first_readable(
    connection: sqlite3.Connection, select: str, last: Key, keys: Iterator[Key]
) -> tuple[Key | None, list[Row]]:
    """Return the first of ``keys`` after ``last`` whose page is readable, with its row if any; None for none."""
    for key in keys:
        if key <= last:
            continue
        try:
            return key, connection.execute(select, key).fetchall()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
    return None, []


def _segment_ids(connection: sqlite3.Connection) -> list[int]:
    """Return the ids of all segments that can be read, in order."""
    return [segment_id for (segment_id,) in SegmentTables(connection).readable_ids().rows]
