"""Compaction of a store that no broker uses: gives the disk space of deleted messages back to the file system."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import accumulate, pairwise
from pathlib import Path

from broker.store.anchored_log import AnchoredLog, anchor_closed
from broker.store.batch import StoreError
from broker.store.checksums import seal_index
from broker.store.counts import needed_in
from broker.store.first_page import forget_copy
from broker.store.judgement import DATABASE, judge
from broker.store.lock import DirectoryLock
from broker.store.log_number import number_in
from broker.store.message_index import read_index, without
from broker.store.read_store import refuse_others
from broker.store.store_check import check


def compact(directory: Path) -> tuple[int, int]:
    """Compact a store; return the database's bytes before and after. Raises StoreError, also for a damaged store."""
    report = check(directory)
    if not report.is_sound:
        raise StoreError(f"cannot compact {directory}: the store is damaged, and was not changed: {report.findings[0]}")
    path = directory / DATABASE
    lock = DirectoryLock(directory)
    anchored = AnchoredLog(directory, judge(directory))
    try:
        anchored.before_recovery()
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            refuse_others(directory, database)
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            before = path.stat().st_size
            number = number_in(database) or 0
            anchored.before_change()
            forget_copy(directory)
            _drop_unneeded_bodies(database)
            database.execute("VACUUM")
            anchor_closed(directory, database, number + 1)
            return before, path.stat().st_size
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"cannot compact {path}: {error}") from error
    finally:
        anchored.close()
        lock.release()


def _drop_unneeded_bodies(database: sqlite3.Connection) -> None:
    """Delete bodies that no queue needs, and segments of which no queue needs any message.

    The places of deleted messages in a segment's index stay, since message ids are counted by places.
    """
    database.execute("BEGIN IMMEDIATE")
    held = [segment_id for (segment_id,) in database.execute("SELECT segment_id FROM segment")]
    for segment_id in held:
        _drop_unneeded_of(database, segment_id)
    database.execute("COMMIT")


def _drop_unneeded_of(database: sqlite3.Connection, segment_id: int) -> None:
    message_index, bodies = database.execute(
        "SELECT message_index, bodies FROM segment WHERE segment_id = ?", (segment_id,)
    ).fetchone()
    slots = read_index(message_index)
    needed = needed_in(database, segment_id, len(slots))
    if not any(needed):
        database.execute("DELETE FROM segment WHERE segment_id = ?", (segment_id,))
    elif not all(needed):
        bounds = pairwise([0, *accumulate(0 if is_large else size for size, _, _, is_large in slots)])
        left = seal_index(segment_id, without(message_index, needed))
        database.execute(
            "UPDATE segment SET message_index = ?, bodies = ? WHERE segment_id = ?",
            (
                left,
                b"".join(
                    bodies[begin:end] for (begin, end), is_needed in zip(bounds, needed, strict=True) if is_needed
                ),
                segment_id,
            ),
        )
