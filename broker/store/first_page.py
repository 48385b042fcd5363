"""Mends the first page of the database, which leads to all other pages, from a copy of the page in file `first-page`.

A first page that may be sound is never replaced, so that mending does no damage.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from broker.store.damage import is_damage
from broker.store.free_list import is_free_list
from broker.store.large import sync_directory
from broker.store.page_header import (
    FREE_COUNT,
    FREE_FIRST,
    HEADER_BYTES,
    PAGE_BYTES,
    PAGE_COUNT,
    SCHEMA_COOKIE,
    is_counted,
    is_ours,
    number,
    unchanging,
    without_count,
    without_free_list,
)
from broker.store.reserve import is_full
from broker.store.schema import APPLICATION_ID, FORMAT_VERSION

COPY, REPLACED = "first-page", "first-page.damaged"
_DATABASE, _LOG = "store.db", "store.db-wal"

_KINDS = {
    "queue": (5, 13),
    "segment": (5, 13),
    "mark": (2, 10),
    "cause": (2, 10),
    "holding": (2, 10),
    "annotation": (2, 10),
}
"""The permitted first bytes of each table's first page: interior or leaf page, of a table with or without rowids."""

Roots = Mapping[str, int]
"""The number of each table's first page."""


@dataclass(frozen=True, slots=True)
class FirstPageCopy:
    """The content of file `first-page`: a copy of the database's first page, and the first page of each table then."""

    page: bytes
    roots: Roots


class FirstPage:
    """The first page of a store's database, with its copy.

    Close this object after the database, for the reason that `LogIndex` gives: the loss of SQLite's locks.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._handle: int | None = None
        self._is_kept = False
        """Whether the copy matches the page, as found when the store was opened."""

    def mend(self, connect: Callable[[], sqlite3.Connection]) -> list[str]:
        """Mend the first page if it is damaged; return sentences about the damage. Call while the database is closed.

        First the log is moved into the tables, for which a damaged page may have to be replaced; ``connect`` opens the
        database for this. While another process reads the log, nothing else is checked: the file is not up to date.
        Raises sqlite3.Error if the disk has no room, or if the database stays unreadable.
        """
        if not (self._directory / _DATABASE).exists():
            forget_copy(self._directory)
            return []
        found: list[str] = []
        try:
            roots = _empty_log(connect)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not is_unreadable(error) or not (found := self._take_copy(None) + self._correct()):
                raise
            roots = _empty_log(connect)
        if self._has_log():
            return found
        found += self._take_copy(roots) + self._correct()
        copy = self._copy()
        self._is_kept = copy is not None and unchanging(copy.page) == unchanging(self._page())
        return found

    def keep(self, connection: sqlite3.Connection) -> None:
        """Write the copy of the first page, unless the copy is current or a part of the log is not in the tables yet.

        Errors of the disk are ignored: the broker goes on, perhaps without a copy.
        """
        (cookie,) = connection.execute("PRAGMA schema_version").fetchone()
        cookie &= 0xFFFFFFFF
        copy = self._copy()
        if self._is_kept and copy is not None and number(copy.page, SCHEMA_COOKIE) == cookie:
            return
        with suppress(OSError):
            page = self._page() if _is_log_written(connection) else b""
            if page and number(page, SCHEMA_COOKIE) == cookie:
                self._write_copy(FirstPageCopy(page, _roots(connection)))

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    # The damage

    def _take_copy(self, roots: Roots | None) -> list[str]:
        """Replace a damaged first page by its copy; return sentences about the damage, none if nothing was replaced.

        ``roots`` are the first pages of the tables by the first page, None if SQLite cannot read that.
        """
        page, copy = self._page(), self._copy()
        if (
            copy is None
            or not self._leads_to_tables(copy.roots, may_be_cut=True)
            or not self._is_damaged(page, roots, copy)
        ):
            return []
        if not (self._directory / REPLACED).exists():
            self._write(REPLACED, page)
        self._put(without_count(without_free_list(copy.page)))
        return [
            f"the first page of {_DATABASE} was damaged: its copy replaced it, and the damaged page "
            f"is kept as {REPLACED}"
        ]

    def _is_damaged(self, page: bytes, roots: Roots | None, copy: FirstPageCopy) -> bool:
        """Whether ``page``, the first of the database, is a damaged form of the page in the copy.

        False if the page may belong to another store, or to other tables: a person may have replaced the database.
        """
        has_other_tables = is_ours(page) and page[SCHEMA_COOKIE] != copy.page[SCHEMA_COOKIE]
        if unchanging(page) == unchanging(copy.page) or has_other_tables:
            return False
        if not roots or page[HEADER_BYTES:] == copy.page[HEADER_BYTES:]:
            return True
        if not is_ours(page):
            return False
        if roots == copy.roots or not self._leads_to_tables(roots):
            return True
        return _bytes_apart(unchanging(page), unchanging(copy.page)) == 1

    def _leads_to_tables(self, roots: Roots, *, may_be_cut: bool = False) -> bool:
        """Whether the first page of each table is of the right kind; ``may_be_cut``: or beyond the end of the file."""
        pages = [roots.get(table, 0) for table in _KINDS]
        return len(set(pages)) == len(pages) and all(
            self._is_root(page, kinds, may_be_cut=may_be_cut)
            for page, kinds in zip(pages, _KINDS.values(), strict=True)
        )

    def _is_root(self, page_number: int, kinds: tuple[int, int], *, may_be_cut: bool) -> bool:
        if page_number > self._page_count():
            return may_be_cut
        return page_number > 1 and self._page(page_number)[0] in kinds

    def _correct(self) -> list[str]:
        """Correct the list of free pages and the page count, which change too often for a copy; return what was wrong.

        A file that was cut off is extended.
        """
        page, found = self._page(), []
        if not is_ours(page) or self._has_log():
            return []
        count = self._page_count()
        if not is_free_list(self._page, count, number(page, FREE_FIRST), number(page, FREE_COUNT)):
            page = without_free_list(page)
            found.append("the list of free pages was damaged: `amqpmesh store compact` frees their space")
        if is_counted(page) and number(page, PAGE_COUNT) != count:
            page = without_count(page)
            found.append(f"{_DATABASE} has {count} pages, but its first page says another number")
        if found:
            self._put(page)
        self._lengthen(page, count)
        return found

    def _lengthen(self, page: bytes, count: int) -> None:
        """Extend a database file that was cut off: SQLite opens no file that ends before a table's first page.

        The new length is the page count in the copy of the first page, within which all tables began.
        """
        copy = self._copy()
        if copy is None or page[SCHEMA_COOKIE] != copy.page[SCHEMA_COOKIE]:
            return
        if count < number(copy.page, PAGE_COUNT):
            os.ftruncate(self._open(), number(copy.page, PAGE_COUNT) * PAGE_BYTES)

    # The files

    def _has_log(self) -> bool:
        log = self._directory / _LOG
        return log.exists() and log.stat().st_size > 0

    def _open(self) -> int:
        if self._handle is None:
            self._handle = os.open(self._directory / _DATABASE, os.O_RDWR | os.O_CLOEXEC)
        return self._handle

    def _page(self, page_number: int = 1) -> bytes:
        return os.pread(self._open(), PAGE_BYTES, (page_number - 1) * PAGE_BYTES)

    def _page_count(self) -> int:
        return os.fstat(self._open()).st_size // PAGE_BYTES

    def _put(self, page: bytes) -> None:
        os.pwrite(self._open(), page, 0)
        os.fsync(self._open())

    def _copy(self) -> FirstPageCopy | None:
        """Return the content of file `first-page`; None if the file is missing or damaged."""
        try:
            found = (self._directory / COPY).read_bytes()
        except OSError:
            return None
        if len(found) <= PAGE_BYTES or found[-4:] != _sum(found[:-4]):
            return None
        return FirstPageCopy(found[:PAGE_BYTES], json.loads(found[PAGE_BYTES:-4]))

    def _write_copy(self, copy: FirstPageCopy) -> None:
        content = copy.page + json.dumps(copy.roots).encode()
        self._write(COPY, content + _sum(content))

    def _write(self, name: str, content: bytes) -> None:
        """Write and sync a file; a copy that a crash left incomplete counts as missing, since its checksum is wrong."""
        handle = os.open(self._directory / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_directory(self._directory)


def forget_copy(directory: Path) -> None:
    """Delete the copy of the first page. Call before tables move within the database, or the format changes."""
    with suppress(FileNotFoundError):
        (directory / COPY).unlink()
        sync_directory(directory)


def _empty_log(connect: Callable[[], sqlite3.Connection]) -> Roots:
    """Move the log of a store into the tables, unless another process reads it; return the first page of each table."""
    with closing(connect()) as database:
        database.execute("PRAGMA busy_timeout=0")
        roots = _roots(database)
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if application == APPLICATION_ID and version <= FORMAT_VERSION:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return roots


def _is_log_written(connection: sqlite3.Connection) -> bool:
    """Move the log into the tables, unless the disk has no room; return whether all of the log was moved."""
    try:
        _, in_log, written = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:
        if not is_full(error):
            raise
        return False
    return bool(in_log == written)


def _roots(database: sqlite3.Connection) -> Roots:
    return dict(database.execute("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'"))


def is_unreadable(error: Exception) -> bool:
    """Whether an error means that the content of the database is unreadable.

    Any error that is not of SQLite does: it is a UnicodeDecodeError, since SQLite quotes damaged text in its message.
    """
    if not isinstance(error, sqlite3.Error):
        return True
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return False
    is_ours_to_mend = is_damage(error) and code & 0xFF != sqlite3.SQLITE_IOERR
    return is_ours_to_mend or code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def _bytes_apart(one: bytes, other: bytes) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def _sum(content: bytes) -> bytes:
    return crc32(content).to_bytes(4)
