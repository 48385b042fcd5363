"""Puts tables with damaged pages aside: such a table is renamed and kept in the database, and a new one replaces it.

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
    """Rename a damaged table, and make a new table with ``rows`` in its place; return the new name of the damaged one.

    ``create`` is the statement that makes the table, ``put`` the one that inserts rows.
    """
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
    """Return the names of the damaged tables that were put aside, oldest first: those of one ``table``, or all."""
    found = connection.execute(
        r"SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ? ESCAPE '\'", (rf"{table}\_{ASIDE}\_%",)
    )
    return sorted((name for (name,) in found), key=lambda name: int(name.rpartition("_")[2]))


def has_lost_queues(connection: sqlite3.Connection) -> bool:
    """Whether a damaged table of queues was put aside, so that a holding may belong to a queue whose row is lost."""
    return bool(aside_of(connection, "queue"))


def may_be_needed(connection: sqlite3.Connection) -> bool:
    """Whether a segment without a readable holding may be needed.

    Such a segment may be needed once a table of holdings, queues or segments of the store was put aside as damaged.
    """
    return any(aside_of(connection, table) for table in ("holding", "queue", "segment"))
