"""Loads the causes for which the broker moved messages, such as dead letters, as far as their rows are readable.

A message with a cause has no deadline. If the cause is lost the deadline must not apply again, or a dead letter would
expire at once: the message counts as moved from an unknown queue. So does every message that may have lost a cause.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from broker.store.aside import put_aside
from broker.store.batch import CauseRow
from broker.store.cause import Cause, Reason
from broker.store.counts import counts_in
from broker.store.damage import is_damage
from broker.store.message_index import read_index
from broker.store.readable_rows import LOWEST, Gap, ReadableRows, read_what_can_be
from broker.store.rows import CAUSE_COLUMNS, cause_of
from broker.store.schema import CAUSE, PUT_CAUSE, cause_values
from broker.store.segment_tables import SegmentTables
from broker.store.segments import SEGMENT_MESSAGES
from broker.store.statements import Statements

LOST_CAUSE = Cause(Reason.MOVED, "", 0, 0)
"""Stands for an unreadable cause: the message counts as moved from an unknown queue, and does not expire."""

Causes = dict[tuple[int, int], Cause]
"""Causes by (queue_id, message_id)."""


def readable_causes(connection: sqlite3.Connection) -> ReadableRows:
    return read_what_can_be(connection, "cause", CAUSE_COLUMNS, ("queue_id", "message_id"))


def load_causes(statements: Statements) -> tuple[Causes, list[str]]:
    """Return all causes, and sentences about losses; LOST_CAUSE replaces unreadable causes, in the table, too."""
    found = readable_causes(statements.connection)
    causes: Causes = {}
    spoiled: list[CauseRow] = []
    sentences: list[str] = []
    for row in found.rows:
        queue_id, message_id = row[:2]
        try:
            causes[queue_id, message_id] = cause_of(row)
        except ValueError as error:
            causes[queue_id, message_id] = LOST_CAUSE
            spoiled.append((queue_id, message_id, LOST_CAUSE))
            sentences.append(f"queue {queue_id}: the dead-letter cause of message {message_id} cannot be read: {error}")
    if found.gap is not None:
        sentences.append(_put_aside(statements, causes, found.gap))
    elif spoiled:
        with statements.transaction():
            statements.insert(PUT_CAUSE, list(map(cause_values, spoiled)))
    return causes, sentences


def _put_aside(statements: Statements, causes: Causes, gap: Gap) -> str:
    """Put table cause aside, and add LOST_CAUSE for messages whose causes may be in the ``gap``; return a sentence."""
    left = len(causes)
    for key in _with_deadlines(statements.connection, gap):
        causes[key] = LOST_CAUSE
    rows = [cause_values((*key, cause)) for key, cause in causes.items()]
    aside = put_aside(statements, "cause", CAUSE, PUT_CAUSE, rows)
    undying = f"{len(causes) - left} messages that may have been dead letters no longer expire"
    return f"table cause was damaged, and was renamed to {aside}: {left} of its rows could be read; {undying}"


def _with_deadlines(connection: sqlite3.Connection, gap: Gap) -> Iterator[tuple[int, int]]:
    """Yield the (queue_id, message_id) within the ``gap`` of unreadable causes of messages that have deadlines."""
    tables = SegmentTables(connection)
    queue_id, message_id = gap.after
    holdings = connection.execute(
        "SELECT queue_id, segment_id, counts FROM holding "
        "WHERE (queue_id, segment_id) > (?, ?) AND (queue_id, segment_id) < (?, ?)",
        (queue_id, max(message_id - SEGMENT_MESSAGES, LOWEST), *gap.before),
    ).fetchall()
    for queue_id, segment_id, counts in holdings:
        for slot in _mortal(tables, segment_id, counts):
            if gap.after < (queue_id, segment_id + slot) < gap.before:
                yield queue_id, segment_id + slot


def _mortal(tables: SegmentTables, segment_id: int, counts: bytes) -> list[int]:
    """Return the places in a segment of messages with deadlines that a queue has; none for an unreadable segment.

    ``counts`` are those of the queue's holding.
    """
    try:
        slots = read_index(tables.index_of(segment_id) or b"")
        both = enumerate(zip(slots, counts_in(counts), strict=True))
        return [slot for slot, ((_, _, expires_at_ms, _), count) in both if count and expires_at_ms]
    except ValueError:
        return []
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        return []
