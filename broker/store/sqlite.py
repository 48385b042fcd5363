"""The store on SQLite: how does a batch become durable in one sync?

Every statement carries hundreds of rows: each row that Python steps gives the interpreter lock up, and beside a busy
event loop it takes milliseconds to get it back. FORMAT.md has the tables and the order of a commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from broker.store.batch import BodyRange, Inventory, QueueKind, QueueRow, StoreError, WriteBatch
from broker.store.large import LargeBodies, sync_directory
from broker.store.lock import DirectoryLock

FORMAT_VERSION = 1
APPLICATION_ID = int.from_bytes(b"AMQm", "big")

# Few sizes, so that few statements are compiled and all stay in the cache.
ROWS_PER_STATEMENT = (200, 50, 10, 1)
IDS_PER_STATEMENT = (500, 100, 20, 1)

_TABLES = """
CREATE TABLE queue (
    queue_id     INTEGER PRIMARY KEY,
    kind         TEXT    NOT NULL,
    address      TEXT    NOT NULL,
    container_id TEXT    NOT NULL,
    link_name    TEXT    NOT NULL,
    seen_mark    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE message (
    message_id    INTEGER PRIMARY KEY,
    size_bytes    INTEGER NOT NULL,
    expires_at_ms INTEGER,
    body          BLOB
) STRICT;
CREATE TABLE entry (
    queue_id       INTEGER NOT NULL,
    message_id     INTEGER NOT NULL,
    delivery_count INTEGER NOT NULL,
    PRIMARY KEY (queue_id, message_id)
) STRICT, WITHOUT ROWID;
"""

_RAISE_SEEN = """
UPDATE entry SET delivery_count = delivery_count + 1
WHERE message_id <= (SELECT seen_mark FROM queue WHERE queue.queue_id = entry.queue_id)
"""


class SqliteStore:
    """Implements ``Store`` in a directory. Raises StoreError for everything that is wrong with it."""

    def __init__(self, directory: Path) -> None:
        with _blaming(f"cannot use {directory}"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            directory.chmod(0o700)
            self._lock = DirectoryLock(directory)
        try:
            with _blaming(f"cannot open the store in {directory}"):
                self._directory = directory
                self._large = LargeBodies(directory / "large")
                self._writer = _connect(directory / "store.db")
                self._prepare()
                self._reader = _connect(directory / "store.db")
                self._reader.execute("PRAGMA query_only=ON")
        except StoreError:
            self._lock.release()
            raise

    def load(self) -> Inventory:
        with _blaming(f"cannot read the store in {self._directory}"):
            self._recover()
            queues = [
                QueueRow(queue_id, QueueKind(kind), address, container_id, link_name)
                for queue_id, kind, address, container_id, link_name in self._writer.execute(
                    "SELECT queue_id, kind, address, container_id, link_name FROM queue ORDER BY queue_id"
                )
            ]
            messages = [
                (message_id, size_bytes, expires_at_ms, bool(is_large))
                for message_id, size_bytes, expires_at_ms, is_large in self._writer.execute(
                    "SELECT message_id, size_bytes, expires_at_ms, body IS NULL FROM message ORDER BY message_id"
                )
            ]
            entries = self._writer.execute(
                "SELECT queue_id, message_id, delivery_count FROM entry ORDER BY message_id, queue_id"
            ).fetchall()
            self._check_large({message_id: size for message_id, size, _, is_large in messages if is_large})
        return Inventory(queues, messages, entries)

    def commit(self, batch: WriteBatch) -> None:
        with _blaming(f"cannot write to the store in {self._directory}"):
            self._large.append(batch.pieces)
            self._large.seal(batch.sealed)
            self._large.finish(batch.finished)
            if batch.has_rows:
                self._commit_rows(batch)
            self._large.unlink(batch.unlinked)

    def read(self, ranges: Sequence[BodyRange]) -> list[bytes]:
        with _blaming(f"cannot read bodies from the store in {self._directory}"):
            rows = self._read_rows([wanted.message_id for wanted in ranges if not wanted.is_large])
            return [
                self._large.read(wanted.message_id, wanted.offset, wanted.size_bytes)
                if wanted.is_large
                else rows[wanted.message_id]
                for wanted in ranges
            ]

    def close(self) -> None:
        with _blaming(f"cannot close the store in {self._directory}"):
            self._large.close()
            self._reader.close()
            self._writer.close()
            self._lock.release()

    # Opening

    def _prepare(self) -> None:
        writer = self._writer
        (version,) = writer.execute("PRAGMA user_version").fetchone()
        (application,) = writer.execute("PRAGMA application_id").fetchone()
        (table_count,) = writer.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if version > FORMAT_VERSION and application == APPLICATION_ID:
            raise StoreError(
                f"{self._directory} has format {version}; this amqpmesh knows format {FORMAT_VERSION} and would "
                "spoil it: use the newer one"
            )
        if table_count and application != APPLICATION_ID:
            raise StoreError(f"{self._directory / 'store.db'} is a database, but not a broker's")
        _use_wal(writer)
        if not table_count:
            writer.executescript(
                f"BEGIN; {_TABLES} PRAGMA application_id={APPLICATION_ID}; "
                f"PRAGMA user_version={FORMAT_VERSION}; COMMIT;"
            )
            sync_directory(self._directory)

    def _recover(self) -> None:
        """What the last process left behind: messages that may have been seen, files and rows that nothing names."""
        with self._transaction():
            self._writer.execute(_RAISE_SEEN)
            self._writer.execute("UPDATE queue SET seen_mark = 0 WHERE seen_mark <> 0")
            self._writer.execute("DELETE FROM entry WHERE queue_id NOT IN (SELECT queue_id FROM queue)")
            self._writer.execute("DELETE FROM message WHERE message_id NOT IN (SELECT message_id FROM entry)")
        large = self._writer.execute("SELECT message_id FROM message WHERE body IS NULL")
        self._large.unlink_all_but({message_id for (message_id,) in large})

    def _check_large(self, sizes_bytes: dict[int, int]) -> None:
        missing = self._large.missing(sizes_bytes)
        if missing:
            raise StoreError(
                f"{len(missing)} large messages are not whole in {self._directory / 'large'}: ids {missing[:10]}"
            )

    # Writing

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise
        self._writer.execute("COMMIT")

    def _commit_rows(self, batch: WriteBatch) -> None:
        with self._transaction():
            self._insert(
                "INSERT INTO queue (queue_id, kind, address, container_id, link_name)",
                [(row.queue_id, row.kind.value, row.address, row.container_id, row.link_name) for row in batch.queues],
            )
            self._insert("INSERT INTO message (message_id, size_bytes, expires_at_ms, body)", batch.messages)
            self._insert("INSERT INTO entry (queue_id, message_id, delivery_count)", batch.entries)
            self._insert(
                "REPLACE INTO entry (queue_id, message_id, delivery_count)",
                [(queue_id, message_id, count) for (queue_id, message_id), count in batch.counts.items()],
            )
            for queue_id, mark in batch.marks.items():
                self._writer.execute("UPDATE queue SET seen_mark = ? WHERE queue_id = ?", (mark, queue_id))
            for queue_id, message_ids in batch.archived.items():
                self._delete("DELETE FROM entry WHERE queue_id = ? AND message_id", message_ids, (queue_id,))
            self._delete("DELETE FROM message WHERE message_id", batch.dropped_messages)
            self._delete("DELETE FROM entry WHERE queue_id", batch.dropped_queues)
            self._delete("DELETE FROM queue WHERE queue_id", batch.dropped_queues)

    def _insert(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        for part in _parts(rows, ROWS_PER_STATEMENT):
            row = f"({','.join('?' * len(part[0]))})"
            self._writer.execute(f"{statement} VALUES {','.join([row] * len(part))}", list(chain.from_iterable(part)))

    def _delete(self, statement: str, ids: Sequence[int], first: Iterable[int] = ()) -> None:
        for part in _parts(ids, IDS_PER_STATEMENT):
            self._writer.execute(f"{statement} IN ({','.join('?' * len(part))})", [*first, *part])

    # Reading

    def _read_rows(self, ids: Sequence[int]) -> dict[int, bytes]:
        rows: dict[int, bytes] = {}
        for part in _parts(ids, IDS_PER_STATEMENT):
            marks = ",".join("?" * len(part))
            rows.update(
                self._reader.execute(f"SELECT message_id, body FROM message WHERE message_id IN ({marks})", part)
            )
        return rows


@contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Whatever the disk or SQLite says becomes a StoreError."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, sqlite3.Error, KeyError) as error:
        raise StoreError(f"{what}: {error or type(error).__name__}") from error


def _connect(path: Path) -> sqlite3.Connection:
    # The writer's and the reader's thread are not the one that opens; each uses its own connection only.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)
    path.chmod(0o600)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA cache_size=-32768")
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"this file system allows no write-ahead log (journal mode is {mode})")


def _parts(items: Sequence[Any], sizes: Sequence[int]) -> Iterator[Sequence[Any]]:
    """Cut into runs of the given sizes, largest first."""
    start = 0
    for size in sizes:
        while len(items) - start >= size:
            yield items[start : start + size]
            start += size
