"""Upgrades a store from older formats, in one transaction of the caller: a crash leaves the old format or the new."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from broker.store.batch import WriteBatch

CHUNK_MESSAGES = 256
USUAL_PRIORITY = 4
"""The priority of all messages stored by formats without priorities."""


def rows_to_segments(writer: sqlite3.Connection, write: Callable[[WriteBatch], None]) -> None:
    """Move messages of format 1, with a row for each, into segments; ``write`` writes a batch to the new tables."""
    ids = [message_id for (message_id,) in writer.execute("SELECT message_id FROM message ORDER BY message_id")]
    for start in range(0, len(ids), CHUNK_MESSAGES):
        within = (ids[start], ids[min(start + CHUNK_MESSAGES, len(ids)) - 1])
        messages = writer.execute(
            f"SELECT message_id, size_bytes, {USUAL_PRIORITY}, expires_at_ms, body FROM message "
            "WHERE message_id BETWEEN ? AND ? ORDER BY message_id",
            within,
        ).fetchall()
        entries = writer.execute(
            "SELECT queue_id, message_id, delivery_count FROM entry WHERE message_id BETWEEN ? AND ?", within
        ).fetchall()
        write(WriteBatch(messages=messages, entries=entries))
    writer.execute("DROP TABLE entry")
    writer.execute("DROP TABLE message")


def marks_by_priority(writer: sqlite3.Connection) -> None:
    """Move the one seen mark in a queue's row, of formats 1 and 2, to table mark, as that of the usual priority."""
    writer.execute(
        f"INSERT INTO mark (queue_id, priority, seen_mark) SELECT queue_id, {USUAL_PRIORITY}, seen_mark FROM queue "
        "WHERE seen_mark <> 0"
    )
    writer.execute("ALTER TABLE queue DROP COLUMN seen_mark")


def add_owners_of_queues(writer: sqlite3.Connection) -> None:
    """Add the columns for owner and time of last use to the queues of formats 1 to 4, with unknown values."""
    writer.execute("ALTER TABLE queue ADD COLUMN owner TEXT")
    writer.execute("ALTER TABLE queue ADD COLUMN used_at_s INTEGER NOT NULL DEFAULT 0")


def add_sums_of_holdings(writer: sqlite3.Connection) -> None:
    """Add the column for checksums to the holdings of formats 2 and 3; old rows stay without a checksum."""
    writer.execute("ALTER TABLE holding ADD COLUMN checksum INTEGER")
