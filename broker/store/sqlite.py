"""The store on SQLite: how does a batch become durable in one sync?

Few rows, each for many messages (`broker.store.segments`), and few statements: each row that Python steps gives the
interpreter lock up, and beside a busy event loop it takes milliseconds to get it back. FORMAT.md has the tables and the
order of a commit.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

from broker.cause import Cause, Reason
from broker.space import Space
from broker.store.batch import (
    BodyRange,
    Inventory,
    QueueKind,
    QueueRow,
    StoredSegment,
    StoreError,
    Unreadable,
    WriteBatch,
)
from broker.store.counts import COUNT_BYTES
from broker.store.damage import DamagedBody, DamagedIndex, is_damage
from broker.store.failpoints import Failpoint, when_passing
from broker.store.large import LargeBodies, sync_directory
from broker.store.lock import DirectoryLock
from broker.store.reserve import Reserve, reserve_bytes
from broker.store.segment_reader import SegmentReader
from broker.store.segments import Rows, Segments, large_in, slot_bytes_of
from broker.store.upgrade import marks_by_priority, rows_to_segments

FORMAT_VERSION = 3
APPLICATION_ID = int.from_bytes(b"AMQm", "big")

REQUIRED_SQLITE = (3, 37, 0)
"""STRICT tables. FORMAT.md says which bugs of later ones do not matter here."""

CHECKPOINT_PAGES = 4000
"""16 MiB of log: what is deleted before that is never written to the tables at all."""
PAGE_BYTES = 4096

# Few sizes, so that few statements are compiled and all stay in the cache.
ROWS_PER_STATEMENT = (200, 50, 10, 1)
IDS_PER_STATEMENT = (500, 100, 20, 1)

_QUEUES = """
CREATE TABLE queue (
    queue_id     INTEGER PRIMARY KEY,
    kind         TEXT    NOT NULL,
    address      TEXT    NOT NULL,
    container_id TEXT    NOT NULL,
    link_name    TEXT    NOT NULL
) STRICT;
"""

_OF_QUEUES = """
CREATE TABLE mark (
    queue_id  INTEGER NOT NULL,
    priority  INTEGER NOT NULL,
    seen_mark INTEGER NOT NULL,
    PRIMARY KEY (queue_id, priority)
) STRICT, WITHOUT ROWID;
CREATE TABLE cause (
    queue_id       INTEGER NOT NULL,
    message_id     INTEGER NOT NULL,
    reason         TEXT    NOT NULL,
    origin         TEXT    NOT NULL,
    delivery_count INTEGER NOT NULL,
    at_ms          INTEGER NOT NULL,
    PRIMARY KEY (queue_id, message_id)
) STRICT, WITHOUT ROWID;
"""

_MESSAGES = """
CREATE TABLE segment (
    segment_id    INTEGER PRIMARY KEY,
    message_index BLOB NOT NULL,
    bodies        BLOB NOT NULL
) STRICT;
CREATE TABLE holding (
    queue_id   INTEGER NOT NULL,
    segment_id INTEGER NOT NULL,
    counts     BLOB NOT NULL,
    PRIMARY KEY (queue_id, segment_id)
) STRICT, WITHOUT ROWID;
"""

_TABLES_OF_QUEUES = ("holding", "mark", "cause", "queue")
_PUT_MARK = "REPLACE INTO mark (queue_id, priority, seen_mark)"
_PUT_CAUSE = "REPLACE INTO cause (queue_id, message_id, reason, origin, delivery_count, at_ms)"
_PUT_HOLDING = "REPLACE INTO holding (queue_id, segment_id, counts)"


class SqliteStore:
    """Implements ``Store`` in a directory. Raises StoreError for everything that is wrong with it."""

    def __init__(self, directory: Path) -> None:
        self._passing = when_passing(os.environ)
        if sqlite3.sqlite_version_info < REQUIRED_SQLITE:
            wanted = ".".join(map(str, REQUIRED_SQLITE))
            raise StoreError(
                f"SQLite {sqlite3.sqlite_version} is too old for a broker's store: expected {wanted} or later"
            )
        with _blaming(f"cannot use {directory}"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            directory.chmod(0o700)
            self._lock = DirectoryLock(directory)
        try:
            with _blaming(f"cannot open the store in {directory}"):
                self._directory = directory
                self._damages: list[str] = []
                self._reserve = Reserve(directory / "reserve")
                self._large = LargeBodies(directory / "large", self._reserve.lend_to)
                self._writer = self._reserve.lend_to(self._open)
                self._reader = _connect(directory / "store.db")
                self._reader.execute("PRAGMA query_only=ON")
                self._bodies = SegmentReader(self._reader)
        except StoreError:
            self._lock.release()
            raise

    def load(self) -> Inventory:
        self._damages = []
        with _blaming(f"cannot read the store in {self._directory}"):
            self._reserve.lend_to(self._recover)
            self._passing(Failpoint.RECOVERY_COMMITTED)
            queues = [
                QueueRow(queue_id, QueueKind(kind), address, container_id, link_name)
                for queue_id, kind, address, container_id, link_name in self._writer.execute(
                    "SELECT queue_id, kind, address, container_id, link_name FROM queue ORDER BY queue_id"
                )
            ]
            self._large.unlink_all_but(self._segments.is_needed)
            causes = self._load_causes()
            count = sum(map(self._segments.count_needed, self._segments.first_ids()))
        return Inventory(queues, self._read_segments(), causes, count, self._segments.next_message_id, self._damages)

    def commit(self, batch: WriteBatch) -> None:
        with _blaming(f"cannot write to the store in {self._directory}"):
            if batch.pieces:
                self._large.append(batch.pieces)
                self._passing(Failpoint.PIECES_WRITTEN)
            if batch.sealed:
                self._large.seal(batch.sealed)
                self._passing(Failpoint.BODIES_SYNCED)
            self._large.finish(batch.finished)
            if batch.has_rows:
                # Once: it counts them as written, and the transaction may have to be made twice.
                rows = self._segments.apply(batch)
                self._commit_what_can_be(batch, rows)
                self._passing(Failpoint.ROWS_COMMITTED)
            if batch.unlinked:
                self._large.unlink(batch.unlinked)
                self._passing(Failpoint.BODIES_UNLINKED)

    def look(self) -> Space:
        """Makes the reserve, too, where there is room for it."""
        with _blaming(f"cannot use the disk of {self._directory}"):
            self._reserve.make(*_room(self._directory))
            total_bytes, free_bytes = _room(self._directory)
            return Space(
                str(self._directory),
                total_bytes,
                free_bytes,
                reusable_bytes=self._value("freelist_count") * self._value("page_size"),
                reserve_bytes=self._reserve.size_bytes,
            )

    def read(self, ranges: Sequence[BodyRange]) -> list[bytes | Unreadable]:
        with _blaming(f"cannot read bodies from the store in {self._directory}"):
            # Ascending: each segment is read once.
            bodies = {wanted: self._read(wanted) for wanted in sorted(ranges, key=lambda wanted: wanted.message_id)}
            return [bodies[wanted] for wanted in ranges]

    def _read(self, wanted: BodyRange) -> bytes | Unreadable:
        try:
            if wanted.is_large:
                return self._large.read(wanted.message_id, wanted.offset, wanted.size_bytes)
            return self._bodies.read(wanted.message_id)
        except (DamagedBody, FileNotFoundError) as error:
            return Unreadable(wanted.message_id, str(error))
        except (OSError, sqlite3.Error) as error:
            if not is_damage(error):
                raise
            return Unreadable(wanted.message_id, str(error))

    def close(self) -> None:
        with _blaming(f"cannot close the store in {self._directory}"):
            self._large.close()
            self._reader.close()
            self._writer.close()
            self._lock.release()

    # Opening

    def _open(self) -> sqlite3.Connection:
        self._writer = _connect(self._directory / "store.db")
        try:
            self._prepare()
        except BaseException:
            self._writer.close()
            raise
        return self._writer

    def _prepare(self) -> None:
        writer = self._writer
        version, application = self._value("user_version"), self._value("application_id")
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
                f"BEGIN; {_QUEUES} {_OF_QUEUES} {_MESSAGES} PRAGMA application_id={APPLICATION_ID}; "
                f"PRAGMA user_version={FORMAT_VERSION}; COMMIT;"
            )
            self._passing(Failpoint.SCHEMA_WRITTEN)
            sync_directory(self._directory)
        elif version < FORMAT_VERSION:
            self._upgrade(version)

    def _upgrade(self, version: int) -> None:
        segments = Segments()
        with self._transaction():
            if version == 1:
                self._make(_MESSAGES)
                rows_to_segments(self._writer, lambda batch: self._write_messages(segments.apply(batch)))
            self._make(_OF_QUEUES)
            marks_by_priority(self._writer)
            self._writer.execute(f"PRAGMA user_version={FORMAT_VERSION}")
            self._passing(Failpoint.UPGRADE_WRITTEN)

    def _make(self, tables: str) -> None:
        for table in tables.split(";")[:-1]:
            self._writer.execute(table)

    def _recover(self) -> None:
        """What the last process left behind: rows that nothing names, and messages that may have been seen."""
        # A page that turns out to be damaged while a transaction is open would end that.
        unneeded = self._unneeded()
        self._load_segments()
        marked = self._marked()
        with self._transaction():
            self._writer.execute("DELETE FROM holding WHERE queue_id NOT IN (SELECT queue_id FROM queue)")
            self._insert(_PUT_HOLDING, marked)
            self._writer.execute("DELETE FROM mark")
            self._passing(Failpoint.RECOVERY_WRITTEN)
        self._sweep(unneeded)

    def _sweep(self, segment_ids: Sequence[int]) -> None:
        """Delete them, but for those that are damaged: they are of no use, and do no harm."""
        try:
            with self._transaction():
                self._delete("DELETE FROM segment WHERE segment_id", segment_ids)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            for segment_id in segment_ids if len(segment_ids) > 1 else ():
                self._sweep([segment_id])

    def _load_segments(self) -> None:
        """From the holdings, how long each is, too: of a damaged one nothing else may be known."""
        segments = self._segments = Segments()
        of_queues = "FROM holding WHERE queue_id IN (SELECT queue_id FROM queue)"
        for segment_id, slots in self._writer.execute(
            f"SELECT segment_id, max(length(counts)) / {COUNT_BYTES} {of_queues} GROUP BY segment_id"
        ):
            segments.load(segment_id, slots)
        segments.keep_clear_of(self._last_segment())
        for holding in self._writer.execute(f"SELECT queue_id, segment_id, counts {of_queues}"):
            segments.load_holding(*holding)

    def _marked(self) -> list[tuple[int, int, bytes]]:
        """Holdings in which messages may have been seen, with their counts raised."""
        marks: dict[int, dict[int, int]] = {}
        for queue_id, priority, mark in self._writer.execute("SELECT queue_id, priority, seen_mark FROM mark"):
            marks.setdefault(queue_id, {})[priority] = mark
        changed: list[tuple[int, int, bytes]] = []
        highest = max((mark for of_queue in marks.values() for mark in of_queue.values()), default=0)
        for segment_id in takewhile(lambda first: first <= highest, self._segments.first_ids()):
            with suppress(DamagedIndex):
                changed += self._segments.raise_counts(segment_id, self._index_of(segment_id), marks)
        return changed

    def _load_causes(self) -> dict[tuple[int, int], Cause]:
        rows = self._writer.execute("SELECT queue_id, message_id, reason, origin, delivery_count, at_ms FROM cause")
        return {(queue_id, message_id): Cause(Reason(why), *rest) for queue_id, message_id, why, *rest in rows}

    def _read_segments(self) -> Iterator[StoredSegment]:
        for segment_id in self._segments.first_ids():
            with _blaming(f"cannot read the store in {self._directory}"):
                try:
                    message_index = self._index_of(segment_id)
                except DamagedIndex as damage:
                    count = self._segments.count_needed(segment_id)
                    self._damages.append(f"segment {segment_id} cannot be read, {count} messages stay away: {damage}")
                    continue
                self._find_missing(segment_id, message_index)
            yield StoredSegment(segment_id, message_index, self._segments.holdings_of(segment_id))

    def _find_missing(self, segment_id: int, message_index: bytes) -> None:
        for slot, size_bytes in large_in(message_index):
            message_id = segment_id + slot
            if self._segments.is_needed(message_id) and not self._large.is_whole(message_id, size_bytes):
                self._damages.append(f"message {message_id} is not whole in {self._directory / 'large'}")

    def _index_of(self, segment_id: int) -> bytes:
        """Raises DamagedIndex: nothing but its own messages is lost then."""
        try:
            row = self._writer.execute(
                "SELECT message_index FROM segment WHERE segment_id = ?", (segment_id,)
            ).fetchone()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            raise DamagedIndex(str(error)) from error
        if row is None:
            raise DamagedIndex("it is not there")
        if len(row[0]) != self._segments.slots_of(segment_id) * slot_bytes_of(row[0]):
            raise DamagedIndex("its index is damaged")
        return bytes(row[0])

    def _unneeded(self) -> list[int]:
        """Segments without a holding; none where the table is too damaged to tell."""
        try:
            rows = self._writer.execute(
                "SELECT segment_id FROM segment WHERE segment_id NOT IN "
                "(SELECT segment_id FROM holding WHERE queue_id IN (SELECT queue_id FROM queue))"
            ).fetchall()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            return []
        return [segment_id for (segment_id,) in rows]

    def _last_segment(self) -> int:
        for table in ("segment", "holding"):
            try:
                (last,) = self._writer.execute(f"SELECT max(segment_id) FROM {table}").fetchone()
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise
            else:
                return last or 0
        return 0

    # Writing

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def _commit_what_can_be(self, batch: WriteBatch, rows: Rows) -> None:
        """A damaged segment cannot be deleted: then all that would be stay until the next start."""
        try:
            self._reserve.lend_to(partial(self._commit_rows, batch, rows))
        except sqlite3.Error as error:
            if not rows.gone_segments or not is_damage(error):
                raise
            rows.gone_segments.clear()
            self._reserve.lend_to(partial(self._commit_rows, batch, rows))

    def _commit_rows(self, batch: WriteBatch, rows: Rows) -> None:
        with self._transaction():
            self._insert(
                "INSERT INTO queue (queue_id, kind, address, container_id, link_name)",
                [(row.queue_id, row.kind.value, row.address, row.container_id, row.link_name) for row in batch.queues],
            )
            self._write_messages(rows)
            self._insert(_PUT_MARK, [(*key, mark) for key, mark in batch.marks.items()])
            self._write_causes(batch)
            for table in _TABLES_OF_QUEUES if batch.dropped_queues else ():
                self._delete(f"DELETE FROM {table} WHERE queue_id", batch.dropped_queues)
            self._passing(Failpoint.ROWS_WRITTEN)

    def _write_causes(self, batch: WriteBatch) -> None:
        rows = [(*ids, each.reason.value, each.origin, each.delivery_count, each.at_ms) for *ids, each in batch.causes]
        self._insert(_PUT_CAUSE, rows)
        for queue_id, message_ids in batch.forgotten_causes.items():
            self._delete("DELETE FROM cause WHERE queue_id = ? AND message_id", message_ids, (queue_id,))

    def _write_messages(self, rows: Rows) -> None:
        self._insert("INSERT INTO segment (segment_id, message_index, bodies)", rows.segments)
        self._insert(_PUT_HOLDING, rows.holdings)
        for queue_id, segment_ids in rows.gone_holdings.items():
            self._delete("DELETE FROM holding WHERE queue_id = ? AND segment_id", segment_ids, (queue_id,))
        self._delete("DELETE FROM segment WHERE segment_id", rows.gone_segments)

    def _value(self, pragma: str) -> int:
        (value,) = self._writer.execute(f"PRAGMA {pragma}").fetchone()
        return int(value)

    def _insert(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        for part in _parts(rows, ROWS_PER_STATEMENT):
            row = f"({','.join('?' * len(part[0]))})"
            self._writer.execute(f"{statement} VALUES {','.join([row] * len(part))}", list(chain.from_iterable(part)))

    def _delete(self, statement: str, ids: Sequence[int], first: Iterable[int] = ()) -> None:
        for part in _parts(ids, IDS_PER_STATEMENT):
            self._writer.execute(f"{statement} IN ({','.join('?' * len(part))})", [*first, *part])


@contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Whatever the disk or SQLite says becomes a StoreError."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, sqlite3.Error, KeyError, ValueError) as error:
        raise StoreError(f"{what}: {error or type(error).__name__}") from error


def _connect(path: Path) -> sqlite3.Connection:
    # The writer's and the reader's thread are not the one that opens; each uses its own connection only.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)
    path.chmod(0o600)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA cache_size=-8192")
    connection.execute(f"PRAGMA wal_autocheckpoint={_checkpoint_pages(path.parent)}")
    # Debian's SQLite overwrites what is deleted with zeros, and so writes every body twice.
    connection.execute("PRAGMA secure_delete=OFF")
    return connection


def _checkpoint_pages(directory: Path) -> int:
    """On a small disk fewer: the log, and what it brings into the tables, must fit where the reserve was."""
    return min(CHECKPOINT_PAGES, reserve_bytes(_room(directory)[0]) // 4 // PAGE_BYTES)


def _room(directory: Path) -> tuple[int, int]:
    """Bytes of its file system, and those of them that are free."""
    found = os.statvfs(directory)
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


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
