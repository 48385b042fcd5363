"""The first page of the file leads to all others. A copy lies beside it, from which it is mended before it is used.

See the file format of SQLite, 1.3 (the header of a database) and 1.5 (the list of free pages).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from zlib import crc32

from broker.store.damage import is_damage
from broker.store.free_list import is_free_list
from broker.store.large import sync_directory
from broker.store.reserve import is_full
from broker.store.schema import APPLICATION_ID, FORMAT_VERSION

PAGE_BYTES = 4096
COPY, REPLACED = "first-page", "first-page.damaged"
_DATABASE, _LOG = "store.db", "store.db-wal"

_MAGIC = b"SQLite format 3\0"
_PAGE_SIZE = slice(16, 18)
_CHANGES = slice(24, 28)
_PAGE_COUNT = slice(28, 32)
"""It holds where what stands in _COUNTED_AT is what stands in _CHANGES; else the file is as long as it is."""
_FREE_FIRST = slice(32, 36)
_FREE_COUNT = slice(36, 40)
_SCHEMA_COOKIE = slice(40, 44)
"""It changes with the tables."""
_FORMAT_VERSION = slice(60, 64)
_APPLICATION_ID = slice(68, 72)
_COUNTED_AT = slice(92, 96)
_WRITTEN_BY = slice(96, 100)
_CHANGING = (_CHANGES, _PAGE_COUNT, _FREE_FIRST, _FREE_COUNT, _COUNTED_AT, _WRITTEN_BY)
"""While the tables are the same."""


class FirstPage:
    """Of the database in a directory. Close it after that: see `LogIndex`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._handle: int | None = None

    def mend(self, connect: Callable[[], sqlite3.Connection]) -> list[str]:
        """Sentences: what was wrong with it. For when nobody has the database open; ``connect`` opens it."""
        if not (self._directory / _DATABASE).exists():
            return []
        found: list[str] = []
        try:
            _empty_log(connect)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not _is_unreadable(error) or not (found := self._take_copy() + self._correct()):
                raise
            _empty_log(connect)
        if self._has_log():
            # What the file says is not what holds.
            return found
        return found + self._take_copy(with_same_tables=True) + self._correct()

    def keep(self, connection: sqlite3.Connection) -> None:
        """Copy it, unless the copy has these tables already, or there is no room for it."""
        (cookie,) = connection.execute("PRAGMA schema_version").fetchone()
        cookie &= 0xFFFFFFFF
        copy = self._copy()
        if copy is not None and _number(copy, _SCHEMA_COOKIE) == cookie:
            return
        try:
            _, in_log, written = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            page = self._page()
            if in_log == written and _number(page, _SCHEMA_COOKIE) == cookie:
                self._write(COPY, page + _sum(page))
        except (OSError, sqlite3.Error) as error:
            if not is_full(error):
                raise

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    # Within

    def _take_copy(self, *, with_same_tables: bool = False) -> list[str]:
        page, copy = self._page(), self._copy()
        if copy is None or _unchanging(page) == _unchanging(copy):
            return []
        if page and with_same_tables and page[_SCHEMA_COOKIE] != copy[_SCHEMA_COOKIE]:
            return []
        self._write(REPLACED, page)
        self._put(_uncounted(_with(_with(copy, _FREE_FIRST, 0), _FREE_COUNT, 0)))
        return [f"the first page of {_DATABASE} was damaged: its copy took its place, and it is kept as {REPLACED}"]

    def _has_log(self) -> bool:
        log = self._directory / _LOG
        return log.exists() and log.stat().st_size > 0

    def _correct(self) -> list[str]:
        """What changes too often for a copy of it."""
        page, found = self._page(), []
        if not _is_ours(page) or self._has_log():
            return []
        page_count = os.fstat(self._open()).st_size // PAGE_BYTES
        if not is_free_list(self._page, page_count, _number(page, _FREE_FIRST), _number(page, _FREE_COUNT)):
            page = _with(_with(page, _FREE_FIRST, 0), _FREE_COUNT, 0)
            found.append("the list of free pages was damaged: `amqpmesh store compact` gives their room back")
        if page[_CHANGES] == page[_COUNTED_AT] and _number(page, _PAGE_COUNT) != page_count:
            page = _uncounted(page)
            found.append(f"{_DATABASE} has {page_count} pages, and its first page says another number")
        if found:
            self._put(page)
        self._lengthen(page_count)
        return found

    def _lengthen(self, page_count: int) -> None:
        """SQLite opens no file that ends before its tables begin. They all began within the pages that it had then."""
        copy = self._copy()
        if copy is not None and page_count < _number(copy, _PAGE_COUNT):
            os.ftruncate(self._open(), _number(copy, _PAGE_COUNT) * PAGE_BYTES)

    def _open(self) -> int:
        if self._handle is None:
            self._handle = os.open(self._directory / _DATABASE, os.O_RDWR | os.O_CLOEXEC)
        return self._handle

    def _page(self, number: int = 1) -> bytes:
        return os.pread(self._open(), PAGE_BYTES, (number - 1) * PAGE_BYTES)

    def _put(self, page: bytes) -> None:
        os.pwrite(self._open(), page, 0)
        os.fsync(self._open())

    def _copy(self) -> bytes | None:
        """None: there is none, or it is damaged itself."""
        try:
            found = (self._directory / COPY).read_bytes()
        except FileNotFoundError:
            return None
        return found[:PAGE_BYTES] if found[PAGE_BYTES:] == _sum(found[:PAGE_BYTES]) else None

    def _write(self, name: str, content: bytes) -> None:
        """One that is not written to its end is none: its sum is wrong."""
        handle = os.open(self._directory / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_directory(self._directory)


def forget_copy(directory: Path) -> None:
    """Before the tables get other places in the file, or another format."""
    (directory / COPY).unlink(missing_ok=True)
    sync_directory(directory)


def _empty_log(connect: Callable[[], sqlite3.Connection]) -> None:
    """Into the tables, of a store that is ours."""
    with closing(connect()) as database:
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if application == APPLICATION_ID and version <= FORMAT_VERSION:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _is_unreadable(error: Exception) -> bool:
    """UnicodeDecodeError: SQLite says what is wrong in the words that it found."""
    if not isinstance(error, sqlite3.Error):
        return True
    return is_damage(error) or error.sqlite_errorcode in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def _is_ours(page: bytes) -> bool:
    return (
        page[: len(_MAGIC)] == _MAGIC
        and _number(page, _PAGE_SIZE) == PAGE_BYTES
        and _number(page, _APPLICATION_ID) == APPLICATION_ID
        and _number(page, _FORMAT_VERSION) <= FORMAT_VERSION
    )


def _sum(page: bytes) -> bytes:
    return crc32(page).to_bytes(4)


def _unchanging(page: bytes) -> bytes:
    left = page
    for part in _CHANGING:
        left = _with(left, part, 0)
    return left


def _uncounted(page: bytes) -> bytes:
    return _with(page, _COUNTED_AT, _number(page, _CHANGES) + 1 & 0xFFFFFFFF)


def _number(page: bytes, part: slice) -> int:
    return int.from_bytes(page[part])


def _with(page: bytes, part: slice, number: int) -> bytes:
    return page[: part.start] + number.to_bytes(part.stop - part.start) + page[part.stop :]
