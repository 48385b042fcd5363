"""A table with a damaged page is renamed, and kept: what nobody can read today somebody may read tomorrow.

Where holdings or queues are damaged, it is not known any more which segments nobody needs: none is swept from then on.
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
    """A new table with these rows takes its place; the new name of the old one."""
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
    """The names of such tables, in the order in which they were put aside."""
    found = connection.execute(
        r"SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ? ESCAPE '\'", (rf"{table}\_{ASIDE}\_%",)
    )
    return sorted((name for (name,) in found), key=lambda name: int(name.rpartition("_")[2]))


def has_lost_queues(connection: sqlite3.Connection) -> bool:
    """A holding may be of a queue whose row is lost."""
    return bool(aside_of(connection, "queue"))


def may_be_needed(connection: sqlite3.Connection) -> bool:
    """A segment, though no holding says so."""
    return any(aside_of(connection, table) for table in ("holding", "queue", "segment"))
