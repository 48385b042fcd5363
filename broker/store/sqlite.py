"""The store of a broker on SQLite: a batch of writes becomes durable with one sync.

A batch has few rows, each for many messages (`broker.store.segments`), and few statements: at each row that Python's
SQLite steps, the thread gives up the interpreter lock, and waits milliseconds to get the lock back from a busy event
loop. FORMAT.md has the tables and the order of a commit.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from broker.store.anchored_log import AnchoredLog
from broker.store.batch import BodyRange, Inventory, StoredSegment, StoreError, UnreadableBody, WriteBatch
from broker.store.checksums import seal_index, sealed_holdings
from broker.store.damage import DamagedBody, is_damage
from broker.store.failpoints import StoreFailpoint, when_passing
from broker.store.first_page import FirstPage, forget_copy, is_unreadable
from broker.store.judgement import DATABASE, LOG, StoreDamagedError, judge, log_bytes
from broker.store.large import LargeBodies, sync_directory
from broker.store.large_reader import LargeReader, Written
from broker.store.lock import DirectoryLock
from broker.store.log_index import LogIndex
from broker.store.log_number import put_number
from broker.store.lost_annotations import write_annotations
from broker.store.page_header import PAGE_BYTES
from broker.store.recovery import Recovery
from broker.store.reserve import Reserve, reserve_bytes
from broker.store.schema import (
    ANNOTATION,
    APPLICATION_ID,
    CAUSE,
    FORMAT_VERSION,
    HOLDING,
    LOG_NUMBER,
    MARK,
    PUT_CAUSE,
    PUT_HOLDING,
    PUT_MARK,
    PUT_QUEUE,
    PUT_SEGMENT,
    SEGMENT,
    TABLES,
    TABLES_OF_QUEUES,
    cause_values,
    queue_values,
)
from broker.store.segment_reader import SegmentReader
from broker.store.segments import SegmentRows, Segments
from broker.store.space import Space
from broker.store.statements import Statements
from broker.store.upgrade import add_owners_of_queues, add_sums_of_holdings, marks_by_priority, rows_to_segments

REQUIRED_SQLITE = (3, 37, 0)
"""The oldest usable SQLite, the first with STRICT tables. FORMAT.md lists harmless bugs of later versions."""

CHECKPOINT_PAGES = 4000
"""Length of the log, 16 MiB, at which SQLite moves it into the tables; earlier deleted messages are never moved."""


class SqliteStore:
    """A broker's store in the files of one directory, which implements ``Store``.

    Raises StoreError for every failure. The directory is made if missing, and locked until `close`. A store with
    missing or unreadable files is refused.
    """

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
        self._directory = directory
        self._first_page = FirstPage(directory)
        self._is_failed = False
        try:
            with _blaming(f"cannot open the store in {directory}"):
                judgement = judge(directory)
                if judgement.findings:
                    raise StoreDamagedError(directory, judgement.findings)
                self._anchored = AnchoredLog(directory, judgement)
                self._reserve = Reserve(directory / "reserve")
                self._reserve.keep_free(_room(directory)[1])
                self._large = LargeBodies(directory / "large", self._reserve.lend_to)
                self._reserve.lend_to(self._anchored.before_recovery)
                self._damages = self._reserve.lend_to(partial(self._first_page.mend, self._connect))
                if not judgement.is_anchor_whole:
                    self._damages.append("half of the file anchor was damaged: the other half may be older")
                self._is_log_left = log_bytes(directory) > 0
                self._writer = self._reserve.lend_to(self._open)
                self._reader = self._connect()
                self._reader.execute("PRAGMA query_only=ON")
                self._bodies = SegmentReader(self._reader)
                self._large_reader = LargeReader(self._large, self._written_of)
        except StoreError as error:
            self._first_page.close()
            self._lock.release()
            if isinstance(error.__cause__, sqlite3.Error) and is_unreadable(error.__cause__):
                raise StoreDamagedError(directory, [f"{DATABASE}: {error.__cause__}"], is_of_sqlite=True) from error
            raise

    def load(self) -> Inventory:
        def recovered() -> Recovery:
            return Recovery(self._statements, self._large, self._passing, self._damages).recover()

        with _blaming(f"cannot read the store in {self._directory}"):
            recovery = self._reserve.lend_to(recovered)
            self._passing(StoreFailpoint.RECOVERY_COMMITTED)
            self._first_page.keep(self._writer)
            self._segments = recovery.segments
            inventory = recovery.inventory()
            return replace(inventory, segments=self._blamed(inventory.segments))

    def _blamed(self, segments: Iterator[StoredSegment]) -> Iterator[StoredSegment]:
        with _blaming(f"cannot read the store in {self._directory}"):
            yield from segments

    def commit(self, batch: WriteBatch) -> None:
        try:
            self._commit(batch)
        except BaseException:
            self._is_failed = True
            raise

    def _commit(self, batch: WriteBatch) -> None:
        with _blaming(f"cannot write to the store in {self._directory}"):
            if batch.pieces:
                self._large.append(batch.pieces)
                self._passing(StoreFailpoint.PIECES_WRITTEN)
            if batch.sealed:
                self._large.seal(batch.sealed)
                self._passing(StoreFailpoint.BODIES_SYNCED)
            self._large.finish(batch.finished)
            if batch.has_rows:
                # The batch is applied once to the segments in memory, whose rows then count as written: only the
                # transaction may have to be made twice.
                rows = self._segments.apply(batch, self._large.checksums)
                self._commit_what_can_be(batch, rows)
                for message_id in batch.sealed:
                    # The index of the large body's segment has the checksum now, so memory need not keep it.
                    del self._large.checksums[message_id]
                self._passing(StoreFailpoint.ROWS_COMMITTED)
            if batch.unlinked:
                # The files of large bodies in a lost queue, one without a readable row, stay: the broker does not know
                # that queue, and so cannot know that its messages are done.
                self._large.unlink([number for number in batch.unlinked if not self._segments.is_needed(number)])
                self._passing(StoreFailpoint.BODIES_UNLINKED)

    def look(self) -> Space:
        """Return a measure of the disk's room, after making the reserve (a file that keeps space) if there is room."""
        with _blaming(f"cannot use the disk of {self._directory}"):
            self._reserve.make(*_room(self._directory))
            total_bytes, free_bytes = _room(self._directory)
            return Space(
                str(self._directory),
                total_bytes,
                free_bytes,
                reusable_bytes=self._statements.value("freelist_count") * self._statements.value("page_size"),
                reserve_bytes=self._reserve.size_bytes,
            )

    def read(self, ranges: Sequence[BodyRange]) -> list[bytes | UnreadableBody]:
        with _blaming(f"cannot read bodies from the store in {self._directory}"):
            # Bodies are read in ascending order of message ids, so that each segment is read once.
            bodies = {wanted: self._read(wanted) for wanted in sorted(ranges, key=lambda wanted: wanted.message_id)}
            return [bodies[wanted] for wanted in ranges]

    def _read(self, wanted: BodyRange) -> bytes | UnreadableBody:
        try:
            if wanted.is_large:
                return self._large_reader.read(wanted)
            return self._bodies.read(wanted.message_id)
        except (DamagedBody, FileNotFoundError) as error:
            return UnreadableBody(wanted.message_id, str(error))
        except (OSError, sqlite3.Error) as error:
            if not is_damage(error):
                raise
            return UnreadableBody(wanted.message_id, str(error))

    def _written_of(self, message_id: int) -> Written:
        """Return a large body's size and checksum: from its segment or, before its commit, from file and memory."""
        checksum = self._large.checksums.get(message_id)
        if checksum is None:
            return self._bodies.large(message_id)
        return Written(self._large.size_bytes(message_id) or 0, checksum)

    def close(self) -> None:
        with _blaming(f"cannot close the store in {self._directory}"):
            self._large.close()
            self._end_log()
            self._reader.close()
            self._writer.close()
            self._log_index.close()
            self._anchored.close()
            self._first_page.close()
            self._lock.release()

    def _end_log(self) -> None:
        """Write `anchor` for a closed store, after a last commit that numbers the log anew.

        After a failed commit `anchor` is written without this last commit.
        """
        if not self._is_failed:
            try:
                self._reserve.lend_to(self._anchored.end)
                return
            except (OSError, sqlite3.Error):
                self._is_failed = True
        self._anchored.leave()

    # Opening

    def _connect(self) -> sqlite3.Connection:
        return _connect(self._directory / "store.db")

    def _open(self) -> sqlite3.Connection:
        self._writer = self._connect()
        self._statements = Statements(self._writer)
        try:
            self._prepare()
            self._log_index = LogIndex(self._directory / "store.db")
        except BaseException:
            self._writer.close()
            raise
        try:
            self._log_index.allocate()
            self._damages += self._anchored.begin(self._statements, self._log_index)
        except BaseException:
            self._writer.close()
            self._log_index.close()
            raise
        return self._writer

    def _prepare(self) -> None:
        writer = self._writer
        version, application = self._statements.value("user_version"), self._statements.value("application_id")
        (table_count,) = writer.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if version > FORMAT_VERSION and application == APPLICATION_ID:
            raise StoreError(
                f"{self._directory} has format {version}; this amqpmesh knows format {FORMAT_VERSION} and "
                "would damage the store: use the newer amqpmesh"
            )
        if table_count and application != APPLICATION_ID:
            raise StoreError(f"{self._directory / 'store.db'} is a database, but not the store of a broker")
        if self._is_log_left:
            # A store whose log could not be emptied is refused: its frames might be taken for part of a new log later.
            raise StoreError(
                f"{self._directory / LOG} cannot be emptied: another process reads {DATABASE}; end that first"
            )
        _use_wal(writer)
        if not table_count:
            with self._statements.transaction():
                self._make(*TABLES)
                put_number(writer, 0)
                writer.execute(f"PRAGMA application_id={APPLICATION_ID}")
                writer.execute(f"PRAGMA user_version={FORMAT_VERSION}")
            self._passing(StoreFailpoint.SCHEMA_WRITTEN)
            sync_directory(self._directory)
        elif version < FORMAT_VERSION:
            self._upgrade(version)

    def _upgrade(self, version: int) -> None:
        segments = Segments()
        forget_copy(self._directory)
        self._anchored.before_change()
        with self._statements.transaction():
            if version == 1:
                self._make(SEGMENT, HOLDING)
                rows_to_segments(self._writer, lambda batch: self._write_messages(segments.apply(batch)))
            if version < 3:
                self._make(MARK, CAUSE)
                marks_by_priority(self._writer)
            if 1 < version < 4:
                add_sums_of_holdings(self._writer)
            if version < 5:
                add_owners_of_queues(self._writer)
                self._make(LOG_NUMBER)
                put_number(self._writer, 0)
            if version < 6:
                self._make(ANNOTATION)
            # Format 7 changes no row: from then on, bodies may be addressed.
            self._writer.execute(f"PRAGMA user_version={FORMAT_VERSION}")
            self._passing(StoreFailpoint.UPGRADE_WRITTEN)

    def _make(self, *tables: str) -> None:
        for table in tables:
            self._writer.execute(table)

    # Writing

    def _commit_what_can_be(self, batch: WriteBatch, rows: SegmentRows) -> None:
        """Commit the rows of a batch; if this fails at a damaged segment to delete, commit without deletes of segments.

        A damaged page of a segment makes the whole transaction fail. Segments that were not deleted are left to the
        next start.
        """
        try:
            self._reserve.lend_to(partial(self._commit_rows, batch, rows))
        except sqlite3.Error as error:
            if not rows.gone_segments or not is_damage(error):
                raise
            rows.gone_segments.clear()
            self._reserve.lend_to(partial(self._commit_rows, batch, rows))

    def _commit_rows(self, batch: WriteBatch, rows: SegmentRows) -> None:
        with self._statements.transaction():
            self._statements.insert(PUT_QUEUE, [queue_values(row) for row in batch.queues])
            self._write_messages(rows)
            self._statements.insert(PUT_MARK, [(*key, mark) for key, mark in batch.marks.items()])
            self._write_causes(batch)
            write_annotations(self._statements, batch.annotations)
            for table in TABLES_OF_QUEUES if batch.dropped_queues else ():
                self._statements.delete(f"DELETE FROM {table} WHERE queue_id", batch.dropped_queues)
            self._passing(StoreFailpoint.ROWS_WRITTEN)

    def _write_causes(self, batch: WriteBatch) -> None:
        self._statements.insert(PUT_CAUSE, list(map(cause_values, batch.causes)))
        for queue_id, message_ids in batch.forgotten_causes.items():
            self._statements.delete("DELETE FROM cause WHERE queue_id = ? AND message_id", message_ids, (queue_id,))

    def _write_messages(self, rows: SegmentRows) -> None:
        segments = [(number, seal_index(number, index), bodies) for number, index, bodies in rows.segments]
        self._statements.insert(PUT_SEGMENT, segments)
        self._statements.insert(PUT_HOLDING, sealed_holdings(rows.holdings))
        for queue_id, segment_ids in rows.gone_holdings.items():
            self._statements.delete("DELETE FROM holding WHERE queue_id = ? AND segment_id", segment_ids, (queue_id,))
        self._statements.delete("DELETE FROM segment WHERE segment_id", rows.gone_segments)


@contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Turn an error of the disk, of SQLite or of unexpected content into a StoreError that begins with ``what``."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, sqlite3.Error, KeyError, ValueError) as error:
        raise StoreError(f"{what}: {error or type(error).__name__}") from error


def _connect(path: Path) -> sqlite3.Connection:
    # SQLite's check of threads is off: one thread opens the two connections, and two others use them, one to write and
    # one to read.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)
    path.chmod(0o600)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA cache_size=-8192")
    connection.execute(f"PRAGMA wal_autocheckpoint={_checkpoint_pages(path.parent)}")
    # The setting secure_delete is turned off: with it, as in Debian, SQLite overwrites deleted content with zeros, and
    # so writes every body twice.
    connection.execute("PRAGMA secure_delete=OFF")
    return connection


def _checkpoint_pages(directory: Path) -> int:
    """Return the length of the log, in pages, at which SQLite moves the log into the tables.

    The log is shorter on a small disk: it and its pages in the tables must fit into the room of the reserve.
    """
    return min(CHECKPOINT_PAGES, reserve_bytes(_room(directory)[0]) // 4 // PAGE_BYTES)


def _room(directory: Path) -> tuple[int, int]:
    """Return (size, space free for this process) of the file system that has ``directory``, in bytes."""
    found = os.statvfs(directory)
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


def _use_wal(connection: sqlite3.Connection) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        raise StoreError(
            f"SQLite cannot use a write-ahead log on this file system: expected journal mode wal, got {mode}"
        )
    # The database is read once here, since the first read makes the index of the write-ahead log.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
