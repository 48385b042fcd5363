"""Tables with damaged pages are renamed and kept: a better tool may be able to read them later.

With a damaged table of holdings or queues nobody can tell which segments are unneeded: from then on none is swept.
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
    """Replace the table by a new table with these rows; return the new name of the old table."""
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
    """The names of tables put aside, in the order in which they were put aside."""
    found = connection.execute(
        r"SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ? ESCAPE '\'", (rf"{table}\_{ASIDE}\_%",)
    )
    return sorted((name for (name,) in found), key=lambda name: int(name.rpartition("_")[2]))


def has_lost_queues(connection: sqlite3.Connection) -> bool:
    """Whether a holding may belong to a queue whose row is lost."""
    return bool(aside_of(connection, "queue"))


def may_be_needed(connection: sqlite3.Connection) -> bool:
    """Whether a segment may be needed without any holding."""
    return any(aside_of(connection, table) for table in ("holding", "queue", "segment"))
