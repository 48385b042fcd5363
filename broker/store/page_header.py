"""Reads and changes the fields at the head of the database's first page. See the file format of SQLite, 1.3."""

from __future__ import annotations

from broker.store.schema import APPLICATION_ID, FORMAT_VERSION

PAGE_BYTES = 4096
HEADER_BYTES = 100
MAGIC = b"SQLite format 3\0"

_PAGE_SIZE = slice(16, 18)
_JOURNAL = slice(18, 20)
_ROLLBACK, _LOG = b"\1\1", b"\2\2"
CHANGES = slice(24, 28)
PAGE_COUNT = slice(28, 32)
"""The number of pages, valid only if COUNTED_AT equals CHANGES; otherwise SQLite uses the size of the file."""
FREE_FIRST = slice(32, 36)
FREE_COUNT = slice(36, 40)
SCHEMA_COOKIE = slice(40, 44)
"""A number that changes whenever a table is made, deleted or moved within the file."""
_FORMAT_VERSION = slice(60, 64)
_APPLICATION_ID = slice(68, 72)
COUNTED_AT = slice(92, 96)
_WRITTEN_BY = slice(96, 100)

_CHANGING = (CHANGES, PAGE_COUNT, FREE_FIRST, FREE_COUNT, COUNTED_AT, _WRITTEN_BY)
"""Fields that change while the tables stay the same."""


def number(page: bytes, part: slice) -> int:
    return int.from_bytes(page[part])


def with_number(page: bytes, part: slice, value: int) -> bytes:
    return page[: part.start] + value.to_bytes(part.stop - part.start) + page[part.stop :]


def is_ours(page: bytes) -> bool:
    """Whether the page is the first page of a broker's store, in a format that this version knows."""
    return (
        page.startswith(MAGIC)
        and number(page, _PAGE_SIZE) == PAGE_BYTES
        and number(page, _APPLICATION_ID) == APPLICATION_ID
        and number(page, _FORMAT_VERSION) <= FORMAT_VERSION
    )


def format_of(page: bytes) -> int:
    """Return the version of the format of a broker's store, by its first page; 0 for any other page."""
    is_store = page.startswith(MAGIC) and number(page, _APPLICATION_ID) == APPLICATION_ID
    return number(page, _FORMAT_VERSION) if is_store else 0


def unchanging(page: bytes) -> bytes:
    """Return the first page with zeros in the fields that change, to compare pages with the same tables."""
    for part in _CHANGING:
        page = with_number(page, part, 0)
    if page[_JOURNAL] == _ROLLBACK:
        # The rollback journal mode, which another program may have set, counts as the mode of a store: opening the
        # store sets the mode back.
        page = page[: _JOURNAL.start] + _LOG + page[_JOURNAL.stop :]
    return page


def is_counted(page: bytes) -> bool:
    """Whether the number of pages in the first page is valid, so that SQLite uses it."""
    return page[CHANGES] == page[COUNTED_AT]


def without_count(page: bytes) -> bytes:
    """Return the first page with an invalid number of pages, so that SQLite uses the size of the file."""
    return with_number(page, COUNTED_AT, number(page, CHANGES) + 1 & 0xFFFFFFFF)


def without_free_list(page: bytes) -> bytes:
    """Return the first page with an empty list of free pages."""
    return with_number(with_number(page, FREE_FIRST, 0), FREE_COUNT, 0)
