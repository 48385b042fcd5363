"""Inserts and deletes many rows with few SQL statements, of few sizes, so that SQLite's cache keeps them compiled."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

ROWS_PER_STATEMENT = (200, 50, 10, 1)
IDS_PER_STATEMENT = (500, 100, 20, 1)


class Statements:
    """Executes SQL statements on a connection without implicit transactions. Raises sqlite3.Error."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.on_commit: Callable[[], None] | None = None
        """Called after each committed and synced transaction."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
            if self.on_commit is not None:
                self.on_commit()
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def value(self, pragma: str) -> int:
        (value,) = self.connection.execute(f"PRAGMA {pragma}").fetchone()
        return int(value)

    def insert(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        for part in _parts(rows, ROWS_PER_STATEMENT):
            row = f"({','.join('?' * len(part[0]))})"
            places = ",".join([row] * len(part))
            self.connection.execute(f"{statement} VALUES {places}", list(chain.from_iterable(part)))

    def delete(self, statement: str, ids: Sequence[int], first: Iterable[int] = ()) -> None:
        for part in _parts(ids, IDS_PER_STATEMENT):
            self.connection.execute(f"{statement} IN ({','.join('?' * len(part))})", [*first, *part])


def _parts(items: Sequence[Any], sizes: Sequence[int]) -> Iterator[Sequence[Any]]:
    """Cut ``items`` into successive parts of the given sizes, the largest first."""
    start = 0
    for size in sizes:
        while len(items) - start >= size:
            yield items[start : start + size]
            start += size
