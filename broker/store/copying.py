"""Backups of a store: makes a copy as of one moment, while the broker goes on, and restores a copy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile, rmtree

from broker.store.anchor import NAME as ANCHOR
from broker.store.anchored_log import anchor_closed
from broker.store.batch import StoreError
from broker.store.check_report import CheckReport
from broker.store.checksums import holding_sum, is_holding, is_index
from broker.store.counts import counts_in, counts_of, needed_in, raised
from broker.store.damage import is_damage
from broker.store.judgement import DATABASE, StoreDamagedError
from broker.store.large import sync_directory
from broker.store.log_number import number_in
from broker.store.message_index import read_index
from broker.store.read_store import LARGE, ReadStore, reading
from broker.store.segment_tables import SegmentTables
from broker.store.store_check import check


def back_up(directory: Path, copy: Path) -> CheckReport:
    """Copy the store in ``directory``, in use or not, to the new directory ``copy``; return a report on the copy.

    Raises StoreError.
    """
    if copy.exists():
        raise StoreError(f"{copy} already exists: expected the name of a new directory for the backup")
    return _copy_to(copy, directory)


def restore(copy: Path, directory: Path) -> CheckReport:
    """Copy the backup in ``copy`` to ``directory``, which must be new or empty; return a report on the new store.

    Raises StoreError, also for a damaged backup.
    """
    directory = directory.resolve()
    if directory.exists() and not (directory.is_dir() and not any(directory.iterdir())):
        raise StoreError(f"{directory} already exists: expected a new or empty directory for the restored store")
    report = check(copy)
    if not report.is_sound:
        raise StoreError(f"cannot restore the backup in {copy}, since it is damaged: {report.findings[0]}")
    return _copy_to(directory, copy)


def _copy_to(directory: Path, source: Path) -> CheckReport:
    """Copy a store to `<name>.partial`, as if its broker had stopped, and rename the copy; return a report on it."""
    partial = directory.with_name(f"{directory.name}.partial")
    with reading(source, may_be_used=True) as store, made(partial):
        if store.missing:
            raise StoreDamagedError(source, list(store.missing))
        try:
            with closing(sqlite3.connect(partial / DATABASE, isolation_level=None)) as database:
                # The database is copied in a single step: SQLite begins a backup in steps anew whenever the broker
                # writes.
                store.database.backup(database)
                _forget(database, _copy_large(store, database, partial))
                _close(database)
                anchor_closed(partial, database, (number_in(database) or 0) + 1)
        except (sqlite3.Error, ValueError) as error:
            raise StoreError(f"cannot copy {source} to {directory}: {error}") from error
        finish(partial)
        report = check(partial)
        partial.rename(directory)
        sync_directory(directory.parent)
    report.directory = directory
    return report


@contextmanager
def made(partial: Path) -> Iterator[None]:
    """Make the directory ``partial`` for a store; delete it with its content if the work in the context fails.

    Raises StoreError if the directory exists.
    """
    try:
        partial.mkdir(mode=0o700, parents=True)
        (partial / LARGE).mkdir(mode=0o700)
    except FileExistsError:
        raise StoreError(
            f"{partial} already exists: an earlier backup, restore or salvage was cut short, or one is under way; "
            f"if none is, remove {partial}"
        ) from None
    try:
        yield
    except BaseException:
        rmtree(partial, ignore_errors=True)
        raise


def _copy_large(store: ReadStore, database: sqlite3.Connection, copy: Path) -> set[int]:
    """Copy the files of large bodies that the copied ``database`` needs; return the ids of those that are gone by now.

    A broker that uses the store deleted these after the moment of the copy. Raises StoreError for a missing body that
    is still needed.
    """
    gone = set()
    tables = SegmentTables(database)
    for (segment_id,) in tables.readable_ids().rows:
        slots = read_index(tables.index_of(segment_id) or b"")
        needed = needed_in(database, segment_id, len(slots))
        for slot in [slot for slot, (*_, is_large) in enumerate(slots) if is_large and needed[slot]]:
            try:
                copyfile(store.large_path(segment_id + slot), copy / LARGE / str(segment_id + slot))
            except FileNotFoundError as error:
                if store.has_now(segment_id, slot):
                    raise StoreError(
                        f"cannot copy {store.directory}: {error.filename}, the body of a large message, is missing"
                    ) from None
                gone.add(segment_id + slot)
    return gone


def _forget(database: sqlite3.Connection, gone: set[int]) -> None:
    rows = database.execute("SELECT queue_id, segment_id, counts FROM holding").fetchall() if gone else []
    database.execute("BEGIN")
    for queue_id, segment_id, counts in rows:
        left = [0 if number in gone else count for number, count in enumerate(counts_in(counts), segment_id)]
        if any(left):
            database.execute(
                "UPDATE holding SET counts = ?, checksum = ? WHERE queue_id = ? AND segment_id = ?",
                (counts_of(left), holding_sum(queue_id, segment_id, counts_of(left)), queue_id, segment_id),
            )
        else:
            database.execute("DELETE FROM holding WHERE queue_id = ? AND segment_id = ?", (queue_id, segment_id))
    for message_id in gone:
        for table in ("cause", "annotation"):
            database.execute(f"DELETE FROM {table} WHERE message_id = ?", (message_id,))
    database.execute("COMMIT")


def _close(database: sqlite3.Connection) -> None:
    """Raise the delivery-counts of messages up to the seen marks, and delete the marks, as a starting broker does."""
    marks = {
        (queue_id, priority): mark
        for queue_id, priority, mark in database.execute("SELECT queue_id, priority, seen_mark FROM mark")
    }
    marked = database.execute(
        "SELECT queue_id, segment_id, counts, checksum FROM holding "
        "WHERE segment_id <= (SELECT max(seen_mark) FROM mark WHERE mark.queue_id = holding.queue_id)"
    ).fetchall()
    tables = SegmentTables(database)
    database.execute("BEGIN")
    for queue_id, segment_id, counts, checksum in marked:
        index = _sound_index(tables, segment_id)
        # Damaged rows stay in the copy as they are, and the check of the copy finds them.
        if index is None or not is_holding(queue_id, segment_id, counts, checksum):
            continue
        seen = [
            message_id <= marks.get((queue_id, priority), 0)
            for message_id, (_, priority, _, _) in enumerate(read_index(index), segment_id)
        ]
        now = raised(counts, seen)
        database.execute(
            "UPDATE holding SET counts = ?, checksum = ? WHERE queue_id = ? AND segment_id = ?",
            (now, holding_sum(queue_id, segment_id, now), queue_id, segment_id),
        )
    database.execute("DELETE FROM mark")
    database.execute("COMMIT")


def _sound_index(tables: SegmentTables, segment_id: int) -> bytes | None:
    try:
        index = tables.index_of(segment_id)
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        return None
    return index if index is not None and is_index(segment_id, index) else None


def finish(copy: Path) -> None:
    """Make the files of a new store readable by their owner only, and sync files and names to the disk."""
    for path in [copy / DATABASE, copy / ANCHOR, *(copy / LARGE).iterdir()]:
        path.chmod(0o600)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    for folder in (copy / LARGE, copy, copy.parent):
        sync_directory(folder)
