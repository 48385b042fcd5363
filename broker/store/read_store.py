"""Reads a store without a write to its directory, not even by SQLite; the log (WAL) is read, too.

If no broker uses the store, a shared lock keeps brokers from starting on the store meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from broker.store.batch import QueueRow, StoreError
from broker.store.counts import needed_in
from broker.store.damage import is_damage
from broker.store.first_page import COPY
from broker.store.judgement import DATABASE, LOG, StoreDamagedError, judge, uri_of
from broker.store.lock import HeldBy, hold_shared
from broker.store.lost_causes import Causes, readable_causes
from broker.store.message_index import read_index
from broker.store.readable_rows import ReadableRows, read_what_can_be
from broker.store.rows import QUEUE_COLUMNS, cause_of, queue_of
from broker.store.schema import APPLICATION_ID, FORMAT_VERSION
from broker.store.segment_tables import SegmentRow, SegmentTables

SHARED_MEMORY = "store.db-shm"
LARGE = "large"


@dataclass(frozen=True, slots=True)
class HoldingRow:
    """A row of table holding, whose ``counts`` say which messages of a segment a queue has."""

    queue_id: int
    segment_id: int
    counts: bytes
    checksum: int | None


class ReadStore:
    """A store that is open for reading, with all tables as of one moment.

    Methods raise sqlite3.Error for unreadable rows, unless they say otherwise.
    """

    def __init__(
        self, directory: Path, database: sqlite3.Connection, *, is_used: bool, missing: Sequence[str] = ()
    ) -> None:
        self.directory = directory
        self.database = database
        self._segments = SegmentTables(database)
        self.missing = missing
        """Sentences about committed changes that are missing from the files, such as a lost log."""
        self.is_used = is_used
        """Whether a broker uses the store, and may have changed the content since it was read."""

    def queues(self) -> list[QueueRow]:
        """Return the queues and subscriptions whose rows are readable; damaged rows are left out."""
        found = []
        for row in self.readable_queues().rows:
            with suppress(ValueError):
                found.append(queue_of(row))
        return found

    def readable_queues(self) -> ReadableRows:
        """Return the rows of table queue that can be read, as `queue_of` expects them."""
        return read_what_can_be(self.database, "queue", QUEUE_COLUMNS, ("queue_id",))

    def marked_queues(self) -> list[int]:
        """Return the ids of the queues that have seen marks, since their broker did not stop in order, or runs."""
        rows = self.database.execute("SELECT DISTINCT queue_id FROM mark WHERE seen_mark <> 0")
        return [queue_id for (queue_id,) in rows]

    def causes(self) -> Causes:
        """Return the causes of moved messages whose rows are readable; damaged rows are left out."""
        found: Causes = {}
        for row in self.readable_causes().rows:
            with suppress(ValueError):
                found[row[0], row[1]] = cause_of(row)
        return found

    def readable_causes(self) -> ReadableRows:
        """Return the rows of table cause that can be read, as `cause_of` expects them."""
        return readable_causes(self.database)

    def segment_ids(self) -> ReadableRows:
        return self._segments.readable_ids()

    def segment(self, segment_id: int) -> SegmentRow | None:
        return self._segments.segment(segment_id)

    def readable_segment(self, segment_id: int) -> SegmentRow | None:
        """Return the segment with this id; None if the segment is missing or unreadable."""
        try:
            return self.segment(segment_id)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            return None

    def holdings(self) -> Iterator[HoldingRow]:
        """Yield the rows of all holdings, in order of segment_id, then queue_id."""
        yield from (
            HoldingRow(*row)
            for row in self.database.execute(
                "SELECT queue_id, segment_id, counts, checksum FROM holding ORDER BY segment_id, queue_id"
            )
        )

    def has_now(self, segment_id: int, slot: int) -> bool:
        """Whether any queue has the message in this slot of a segment now.

        Always True if no broker uses the store: then nothing changed since the store was opened for reading.
        """
        if not self.is_used:
            return True
        with closing(sqlite3.connect(_uri(self.directory, "mode=ro"), uri=True)) as now:
            index = SegmentTables(now).index_of(segment_id)
            return index is not None and needed_in(now, segment_id, len(read_index(index)))[slot]

    def large_path(self, message_id: int) -> Path:
        return self.directory / LARGE / str(message_id)


@contextmanager
def reading(directory: Path, *, may_be_used: bool = False) -> Iterator[ReadStore]:
    """Open the store in a directory for reading, and close it after the context.

    Raises StoreError if there is no readable store, or if a broker uses the store, unless ``may_be_used``.
    """
    if not directory.is_dir():
        raise StoreError(_no_store(directory))
    with ExitStack() as stack:
        holder = hold_shared(directory, stack)
        if holder is not None and not may_be_used:
            raise StoreError(f"{directory} is in use by process {holder}: stop the broker first")
        # A store in use is not judged: while a broker writes, its files are from different moments.
        missing = judge(directory).findings if holder is None else []
        if not (directory / DATABASE).is_file():
            raise StoreDamagedError(directory, missing) if missing else StoreError(_no_store(directory))
        try:
            database = sqlite3.connect(_address(directory, holder, stack), uri=True, isolation_level=None)
            stack.callback(database.close)
            database.execute("BEGIN")
            refuse_others(directory, database)
            store = ReadStore(directory, database, is_used=holder is not None, missing=missing)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            mended = ": a broker tries to repair the file when it starts" if (directory / COPY).exists() else ""
            raise StoreError(f"cannot read {directory / DATABASE}: {error}{mended}") from error
        yield store


def _no_store(directory: Path) -> str:
    return f"there is no store in {directory}: expected the data directory of a broker, with {DATABASE}"


def _address(directory: Path, holder: HeldBy, stack: ExitStack) -> str:
    if holder is not None:
        return _uri(directory, "mode=ro")
    log = directory / LOG
    if not log.exists() or log.stat().st_size == 0:
        return _uri(directory, "immutable=1")
    if (directory / SHARED_MEMORY).exists():
        return _uri(directory, "mode=ro&readonly_shm=1")
    # For a log without its index, as in a copy made by a user, SQLite would write an index into the directory: so it
    # reads a temporary copy of database and log.
    copy = Path(stack.enter_context(TemporaryDirectory(prefix="amqpmesh-store-")))
    for name in (DATABASE, LOG):
        copyfile(directory / name, copy / name)
    return _uri(copy, "mode=rw")


def _uri(directory: Path, how: str) -> str:
    return uri_of(directory / DATABASE, how)


def refuse_others(directory: Path, database: sqlite3.Connection) -> None:
    """Raise StoreError for a database that is not the store of a broker, or has another format than this version's."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise StoreError(
            f"{directory / DATABASE} is a database, but not the store of a broker: name a broker's data directory"
        )
    if version != FORMAT_VERSION:
        older = "a broker upgrades the store when it starts" if version < FORMAT_VERSION else "use the newer amqpmesh"
        raise StoreError(f"{directory} has format {version}; this amqpmesh reads format {FORMAT_VERSION}: {older}")
