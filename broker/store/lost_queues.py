"""Finds queues with readable rows, and lost queues: a lost queue has messages (holdings), but no readable row.

Messages of a lost queue are not delivered, since the queue's address is unknown. The messages stay stored, and the id
of the lost queue is never given to another queue, which would get the messages.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Any

from broker.store.aside import has_lost_queues, put_aside
from broker.store.batch import QueueRow
from broker.store.counts import counts_in
from broker.store.damage import is_damage
from broker.store.readable_rows import Gap, read_what_can_be
from broker.store.rows import QUEUE_COLUMNS, queue_of
from broker.store.schema import PUT_QUEUE, QUEUE, queue_values
from broker.store.statements import Statements

UNSEEN_IDS = 1 << 20
"""The ids left free after the highest known id once queues were lost: at most so many unknown queues are assumed."""


def stored_queues(connection: sqlite3.Connection) -> list[QueueRow]:
    rows = connection.execute(f"SELECT {QUEUE_COLUMNS} FROM queue ORDER BY queue_id")
    return [queue_of(row) for row in rows]


def salvage_queues(statements: Statements) -> list[str]:
    """Put a damaged table of queues aside, with its readable rows in a new table; return one sentence, or none."""
    connection = statements.connection
    found = read_what_can_be(connection, "queue", QUEUE_COLUMNS, ("queue_id",))
    rows = found.rows if found.gap is None else [*found.rows, *_within(connection, found.gap)]
    queues = []
    for row in rows:
        with suppress(ValueError):
            queues.append(queue_of(row))
    if found.gap is None and len(queues) == len(rows):
        return []
    aside = put_aside(statements, "queue", QUEUE, PUT_QUEUE, [queue_values(queue) for queue in queues])
    return [
        f"table queue was damaged, and was renamed to {aside}: {len(queues)} of its queues and "
        "subscriptions could be read"
    ]


def lost_queues(connection: sqlite3.Connection) -> dict[int, int]:
    """Return the number of messages of each lost queue, by queue_id; {} unless a table of queues was put aside.

    Raises sqlite3.Error if a holding is unreadable.
    """
    if not has_lost_queues(connection):
        return {}
    lost: dict[int, int] = {}
    for queue_id, counts in connection.execute(
        "SELECT queue_id, counts FROM holding WHERE queue_id NOT IN (SELECT queue_id FROM queue)"
    ):
        lost[queue_id] = lost.get(queue_id, 0) + _count(counts)
    return lost


def next_queue_id(connection: sqlite3.Connection) -> int:
    """Return an id for a new queue that is above the ids of all queues in the store, lost ones included."""
    highest = max(_highest(connection, table) for table in ("queue", "holding"))
    return highest + 1 + (UNSEEN_IDS if has_lost_queues(connection) else 0)


def holders(connection: sqlite3.Connection) -> list[int]:
    """Return the ids of queues, lost or not, for which there is a readable holding."""
    holders = read_what_can_be(connection, "holding", "queue_id, segment_id", ("queue_id", "segment_id")).rows
    return sorted({queue_id for queue_id, _ in holders})


def _within(connection: sqlite3.Connection, gap: Gap) -> list[tuple[Any, ...]]:
    """Return the readable rows of queues between damaged pages, found by the ids of queues in holdings."""
    found: list[tuple[Any, ...]] = []
    for queue_id in holders(connection):
        if gap.after < (queue_id,) < gap.before:
            try:
                found += connection.execute(f"SELECT {QUEUE_COLUMNS} FROM queue WHERE queue_id = ?", (queue_id,))
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise
    return found


def _highest(connection: sqlite3.Connection, table: str) -> int:
    (highest,) = connection.execute(f"SELECT max(queue_id) FROM {table}").fetchone()
    return highest or 0


def _count(counts: bytes) -> int:
    with suppress(ValueError):
        return sum(map(bool, counts_in(counts)))
    return 0
