"""Where do segments lie? In one table; once pages that lead to its end were damaged, in that and a new one.

What was put aside is read, as far as it can be, and never written again: to delete from it might free pages that are
others' by now.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from broker.store.aside import aside_of, put_aside
from broker.store.damage import is_damage
from broker.store.readable import Readable, read_what_can_be
from broker.store.schema import PUT_SEGMENT, SEGMENT
from broker.store.statements import Statements

UNSEEN_MESSAGES = 1 << 32
"""So many may have come after the last that can be seen."""

_BEYOND_ALL = 1 << 62
_PROBE_BYTES = 4000
"""Too much for the last page, unless that is empty: the one above is written too."""


class SegmentTables:
    """Of one connection, as they are when this is made."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        aside = aside_of(connection, "segment")
        self.names = ["segment", *reversed(aside)]
        """The newest first."""
        self.unseen_count = UNSEEN_MESSAGES if aside else 0

    def find(self, columns: str, where: str, segment_id: int) -> tuple[Any, ...] | None:
        """The first row. Raises sqlite3.Error when it is not there, but may be on a page that cannot be read."""
        damage = None
        for table in self.names:
            try:
                row = self._connection.execute(f"SELECT {columns} FROM {table} WHERE {where}", (segment_id,)).fetchone()
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise
                damage = error
                continue
            if row is not None:
                return tuple(row)
        if damage is not None:
            raise damage
        return None

    def index_of(self, segment_id: int) -> bytes | None:
        """Raises sqlite3.Error."""
        row = self.find("message_index", "segment_id = ?", segment_id)
        return None if row is None else row[0]

    def readable_ids(self) -> Readable:
        """Each in a row, in order: those of a newer table come after all of the older."""
        found = [read_what_can_be(self._connection, table, "segment_id", ("segment_id",)) for table in self.names]
        gaps = [readable.gap for readable in found if readable.gap is not None]
        return Readable(sorted(row for readable in found for row in readable.rows), gaps[0] if gaps else None)

    def last_id(self) -> int:
        """That can be seen; 0 for none."""
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
    """Where no segment can be written behind the others any more, they begin anew."""
    if _can_append(statements.connection):
        return []
    aside = put_aside(statements, "segment", SEGMENT, PUT_SEGMENT, [])
    return [f"table segment was damaged, and is kept as {aside}: new messages go into another"]


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
