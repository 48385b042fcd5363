"""Puts tables with damaged pages aside: such a table is renamed and kept, for a better tool to read later.

After a table of holdings (which queue has which messages of a segment), queues or segments was put aside, nobody can
tell which segments are unneeded: from then on recovery deletes no segment for want of a holding.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from broker.store.first_page import forget_copy
from broker.store.statements import Statements

ASIDE = "damaged"


def put_aside(statements: Statements, table: str, create: str, put: str, rows: Sequence[tuple[Any, ...]]) -> str:
    """Rename a damaged table, and make a new table with ``rows`` in its place; return the new name of the old table."""
    connection = statements.connection
    aside = f"{table}_{ASIDE}_{len(aside_of(connection)) + 1}"
    forget_copy(_directory_of(connection))
    with statements.transaction():
        connection.execute(f"ALTER TABLE {table} RENAME TO {aside}")
        connection.execute(create)
        statements.insert(put, rows)
    return aside


def _directory_of(connection: sqlite3.Connection) -> Path:
    _, _, file = connection.execute("PRAGMA database_list").fetchone()
    return Path(file).parent


def aside_of(connection: sqlite3.Connection, table: str = "%") -> list[str]:
    """Return the names of damaged tables that were put aside, in order; of one ``table``, or of all."""
    found = connection.execute(
        r"SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ? ESCAPE '\'", (rf"{table}\_{ASIDE}\_%",)
    )
    return sorted((name for (name,) in found), key=lambda name: int(name.rpartition("_")[2]))


def has_lost_queues(connection: sqlite3.Connection) -> bool:
    """Whether a table of queues was put aside, so that a holding may belong to a queue whose row is lost."""
    return bool(aside_of(connection, "queue"))


def may_be_needed(connection: sqlite3.Connection) -> bool:
    """Whether a segment may be needed although no readable holding names the segment."""
    return any(aside_of(connection, table) for table in ("holding", "queue", "segment"))
