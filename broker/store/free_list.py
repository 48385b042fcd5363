"""Checks the database's list of free pages: a damaged list would end a broker, or make it overwrite pages in use.

See the file format of SQLite, 1.5: a trunk page has the number of the next trunk page, a count, and as many numbers of
free pages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from broker.store.damage import is_damage

LOCK_PAGE = (1 << 30) // 4096 + 1
"""The page of SQLite's locks, never used for data."""

_HEAD = struct.Struct(">II")


class Trunk(NamedTuple):
    """The content of a trunk page of SQLite's list of free pages: the next trunk page, and numbers of free pages."""

    following: int
    """The number of the next trunk page; 0 at the end of the list."""
    free: tuple[int, ...]


def is_free_list(read_page: Callable[[int], bytes], page_count: int, first: int, free_count: int) -> bool:
    """Whether the list of free pages from page ``first`` has ``free_count`` different pages, trunk pages included.

    Pages 1, LOCK_PAGE and pages beyond ``page_count`` are never free, so a list with one of these is damaged.
    """
    is_listed = bytearray(max(page_count, LOCK_PAGE) + 1)
    is_listed[0] = is_listed[1] = is_listed[LOCK_PAGE] = 1
    found, page_number = 0, first
    while page_number:
        trunk = _trunk(page_number, read_page, page_count)
        if trunk is None:
            return False
        for number in (page_number, *trunk.free):
            if number > page_count or is_listed[number]:
                return False
            is_listed[number] = 1
        found += 1 + len(trunk.free)
        page_number = trunk.following
    return found == free_count


def _trunk(page_number: int, read_page: Callable[[int], bytes], page_count: int) -> Trunk | None:
    """Return the content of a trunk page; None if the page is unreadable, beyond the file, or no trunk page."""
    if page_number > page_count:
        return None
    try:
        page = read_page(page_number)
    except OSError as error:
        if not is_damage(error):
            raise
        return None
    following, count = _HEAD.unpack_from(page)
    if count > len(page) // 4 - 2:
        return None
    return Trunk(following, struct.unpack_from(f">{count}I", page, _HEAD.size))
