"""Reads a table with damaged pages: from the first row up to the damage, and from the last row down to the damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broker.store.damage import is_damage

Row = tuple[Any, ...]
Key = tuple[Any, ...]

LOWEST = -(1 << 63)
HIGHEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Gap:
    """The unreadable part of a table: rows with keys strictly between ``after`` and ``before`` may be lost."""

    after: Key
    before: Key


@dataclass(frozen=True, slots=True)
class ReadableRows:
    """The readable rows of a table, and the unreadable part, None if the whole table is readable."""

    rows: list[Row]
    """The readable rows, in order of their keys."""
    gap: Gap | None


def read_what_can_be(connection: sqlite3.Connection, table: str, columns: str, key: Sequence[str]) -> ReadableRows:
    """Return the rows of a table before and behind its damage; ``columns`` begin with ``key``, the primary key.

    Rows whose keys are no integers are left out, and make the whole table the gap.
    """
    everything = Gap((LOWEST,) * len(key), (HIGHEST,) * len(key))
    scan = _Scan(connection, f"SELECT {columns} FROM {table}", key)
    rows = scan.up(everything.after)
    if scan.is_whole:
        sound = [row for row in rows if all(isinstance(part, int) for part in row[: len(key)])]
        return ReadableRows(sound, None if len(sound) == len(rows) else everything)
    after = rows[-1][: len(key)] if rows else everything.after
    last = scan.down(everything.before, after)
    before = last[0][: len(key)] if last else everything.before
    return ReadableRows(rows + last, Gap(after, before))


class _Scan:
    """Reads the rows of a table in the order of their key; ``is_whole``: the last scan met no damaged page."""

    def __init__(self, connection: sqlite3.Connection, select: str, key: Sequence[str]) -> None:
        self._connection = connection
        self._select = select
        self._key = key
        self.is_whole = False

    def up(self, after: Key) -> list[Row]:
        return self._read(">", "ASC", after)

    def down(self, before: Key, after: Key) -> list[Row]:
        rows = self._read("<", "DESC", before)
        return [row for row in reversed(rows) if row[: len(self._key)] > after]

    def _read(self, beyond: str, order: str, start: Key) -> list[Row]:
        """Return the rows beyond the key ``start``, in this ``order``, up to the first damaged page.

        Python's SQLite fetches one row ahead, so the last row before the damage is read separately.
        """
        places = ", ".join("?" * len(self._key))
        by = ", ".join(f"{column} {order}" for column in self._key)
        query = f"{self._select} WHERE ({', '.join(self._key)}) {beyond} ({places}) ORDER BY {by}"
        rows, self.is_whole = self._all_of(query, start)
        if not self.is_whole:
            rows += self._all_of(f"{query} LIMIT 1", rows[-1][: len(self._key)] if rows else start)[0]
        return rows

    def _all_of(self, query: str, start: Key) -> tuple[list[Row], bool]:
        rows: list[Row] = []
        try:
            rows.extend(self._connection.execute(query, start))
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            return rows, False
        return rows, True
