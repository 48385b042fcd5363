"""A backup of a store, of one moment, while its broker goes on; and back again."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile, rmtree

from broker.store.batch import StoreError
from broker.store.checking import CheckReport, check, counts_in
from broker.store.large import sync_directory
from broker.store.reading import DATABASE, LARGE, ReadStore, reading
from broker.store.segments import read_index


def back_up(directory: Path, copy: Path) -> CheckReport:
    """Copy the store in ``directory``, used or not, to ``copy``, which must not be there; says what is there then."""
    with reading(directory, may_be_used=True) as store, _made(copy):
        try:
            with closing(sqlite3.connect(copy / DATABASE, isolation_level=None)) as database:
                # In one go: in steps it would begin anew whenever the broker writes.
                store.database.backup(database)
                _forget(database, _copy_large(store, database, copy))
        except sqlite3.Error as error:
            raise StoreError(f"cannot copy {directory} to {copy}: {error}") from error
        _sync(copy)
    return check(copy)


def restore(copy: Path, directory: Path) -> CheckReport:
    """Make ``directory``, which must not be there or be empty, what the backup in ``copy`` is."""
    report = check(copy)
    if not report.is_sound:
        raise StoreError(f"{copy} is damaged: {report.findings[0]}")
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()
    return back_up(copy, directory)


@contextmanager
def _made(copy: Path) -> Iterator[None]:
    """A directory with nothing in it; it goes again when what is done in it fails."""
    try:
        copy.mkdir(mode=0o700, parents=True)
        (copy / LARGE).mkdir(mode=0o700)
    except FileExistsError:
        raise StoreError(f"{copy} is there already: a backup never goes over another") from None
    try:
        yield
    except BaseException:
        rmtree(copy, ignore_errors=True)
        raise


def _copy_large(store: ReadStore, database: sqlite3.Connection, copy: Path) -> set[int]:
    """Message ids of those that are gone: they were settled since the copied moment."""
    gone = set()
    for segment_id, message_index in database.execute("SELECT segment_id, message_index FROM segment"):
        for message_id, (_, _, is_large) in enumerate(read_index(message_index), segment_id):
            if is_large:
                try:
                    copyfile(store.large_path(message_id), copy / LARGE / str(message_id))
                except FileNotFoundError:
                    gone.add(message_id)
    return gone


def _forget(database: sqlite3.Connection, gone: set[int]) -> None:
    rows = database.execute("SELECT queue_id, segment_id, counts FROM holding").fetchall() if gone else []
    database.execute("BEGIN")
    for queue_id, segment_id, counts in rows:
        left = [0 if number in gone else count for number, count in enumerate(counts_in(counts), segment_id)]
        if any(left):
            database.execute(
                "UPDATE holding SET counts = ? WHERE queue_id = ? AND segment_id = ?",
                (struct.pack(f"<{len(left)}H", *left), queue_id, segment_id),
            )
        else:
            database.execute("DELETE FROM holding WHERE queue_id = ? AND segment_id = ?", (queue_id, segment_id))
    database.execute("COMMIT")


def _sync(copy: Path) -> None:
    for path in [copy / DATABASE, *(copy / LARGE).iterdir()]:
        path.chmod(0o600)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    for folder in (copy / LARGE, copy, copy.parent):
        sync_directory(folder)
