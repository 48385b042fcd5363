"""Reads segments from the table segment, and from tables of segments that were put aside as damaged.

A table of segments is put aside when nothing can be appended to it any more. The table is then read, as far as
possible, and never written again: a delete might free pages that belong to other tables by now.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from broker.store.aside import aside_of, put_aside
from broker.store.cut_bodies import left_of_bodies
from broker.store.damage import is_damage
from broker.store.readable_rows import ReadableRows, read_what_can_be
from broker.store.schema import PUT_SEGMENT, SEGMENT
from broker.store.segments import SEGMENT_MESSAGES
from broker.store.statements import Statements

UNSEEN_MESSAGES = 1 << 32
"""The message ids left free after the last readable segment, once a table was put aside: unreadable ones may exist."""

_BEYOND_ALL = 1 << 62
_PROBE_BYTES = 4000
"""The size of the row of a trial append: too much for the last page, so that the page above is written, too."""


Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A segment as read from its table; ``bodies`` may be incomplete."""

    segment_id: int
    message_index: bytes
    bodies: bytes
    damage: str | None = None
    """Why ``bodies`` are incomplete, None if complete; a body within incomplete ``bodies`` needs a right checksum."""


class SegmentTables:
    """Finds segments in the tables of segments that a database had when this object was made, damaged ones included."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        aside = aside_of(connection, "segment")
        self.names = ["segment", *reversed(aside)]
        """The names of all tables of segments, the newest table first."""
        self.unseen_count = UNSEEN_MESSAGES if aside else 0

    def find(self, columns: str, where: str, segment_id: int) -> tuple[Any, ...] | None:
        """Return ``columns`` of the first segment for which ``where`` holds, by table, the newest first; None for none.

        ``segment_id`` stands for the ? of ``where``. Raises sqlite3.Error if none is found, but an unreadable page may
        have it.
        """
        return self._first(lambda table: self._row_in(table, columns, where, segment_id))

    def segment(self, segment_id: int) -> SegmentRow | None:
        """Return a segment, unreadable bodies left out; None if it is missing. Raises sqlite3.Error, as `find` does."""
        return self._first(lambda table: self._segment_in(table, "segment_id = ?", segment_id))

    def segment_with(self, message_id: int) -> SegmentRow | None:
        """Return, as `segment` does, the last segment with an id up to ``message_id``: only it may have the message."""
        return self._first(lambda table: self._last_in(table, message_id))

    def _last_in(self, table: str, message_id: int) -> SegmentRow | None:
        try:
            return self._segment_in(table, "segment_id <= ? ORDER BY segment_id DESC LIMIT 1", message_id)
        except sqlite3.Error as error:
            # SQLite searches where a segment with the message's id would be, perhaps on the next page, a damaged one.
            # The segment is then searched upwards, from the lowest id that it may have.
            before = self._last_before_damage(table, message_id) if is_damage(error) else None
            if before is None:
                raise
            return self._segment_in(table, "segment_id = ?", before)

    def _last_before_damage(self, table: str, message_id: int) -> int | None:
        """Return the id of the last readable segment that may have a message, by an ascending scan; None for none."""
        last = None
        start = message_id - SEGMENT_MESSAGES + 1
        where = "segment_id BETWEEN ? AND ? ORDER BY segment_id LIMIT 1"
        try:
            while row := self._row_in(table, "segment_id", where, start, message_id):
                (last,) = row
                start = last + 1
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
        return last

    def _segment_in(self, table: str, where: str, segment_id: int) -> SegmentRow | None:
        try:
            row = self._row_in(table, "segment_id, message_index, bodies", where, segment_id)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            row = self._row_in(table, "segment_id, message_index", where, segment_id)
            if row is None or not isinstance(row[1], bytes):
                raise
            number, index = row
            return SegmentRow(number, index, left_of_bodies(self._connection, table, number, index), str(error))
        return None if row is None else SegmentRow(*row)

    def _row_in(self, table: str, columns: str, where: str, *ids: int) -> tuple[Any, ...] | None:
        row = self._connection.execute(f"SELECT {columns} FROM {table} WHERE {where}", ids).fetchone()
        return None if row is None else tuple(row)

    def _first(self, row_in: Callable[[str], Found | None]) -> Found | None:
        damage = None
        for table in self.names:
            try:
                row = row_in(table)
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise
                damage = error
                continue
            if row is not None:
                return row
        if damage is not None:
            raise damage
        return None

    def index_of(self, segment_id: int) -> bytes | None:
        """Return the message_index of a segment; None if that is missing. Raises sqlite3.Error, as `find` does."""
        row = self.find("message_index", "segment_id = ?", segment_id)
        return None if row is None else row[0]

    def readable_ids(self) -> ReadableRows:
        """Return the ids of the readable segments in all tables, in order, and the gap of a damaged table, if any."""
        found = [read_what_can_be(self._connection, table, "segment_id", ("segment_id",)) for table in self.names]
        gaps = [readable.gap for readable in found if readable.gap is not None]
        return ReadableRows(sorted(row for readable in found for row in readable.rows), gaps[0] if gaps else None)

    def last_id(self) -> int:
        """Return the highest id of a segment in the readable tables; 0 if there is none."""
        return max(self._last_of(table) for table in self.names)

    def _last_of(self, table: str) -> int:
        try:
            (last,) = self._connection.execute(f"SELECT max(segment_id) FROM {table}").fetchone()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            return 0
        return last or 0


def salvage_segments(statements: Statements) -> list[str]:
    """Put the table segment aside if no segment can be appended to it; return one sentence about this, else none."""
    if _can_append(statements.connection):
        return []
    aside = put_aside(statements, "segment", SEGMENT, PUT_SEGMENT, [])
    return [f"table segment was damaged, and was renamed to {aside}: new messages go into a new table"]


def _can_append(connection: sqlite3.Connection) -> bool:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(f"{PUT_SEGMENT} VALUES (?, zeroblob({_PROBE_BYTES}), zeroblob(0))", (_BEYOND_ALL,))
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        return False
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return True
