"""Do the pages that list the free ones say what can be? Led astray a broker would end, or write over what others have.

See the file format of SQLite, 1.5: such a page has the number of the next, a count, and as many numbers of free pages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from broker.store.damage import is_damage

LOCK_PAGE = (1 << 30) // 4096 + 1
"""SQLite's locks lie there, and nothing else."""

_HEAD = struct.Struct(">II")


class Trunk(NamedTuple):
    following: int
    """The next such page, or 0."""
    free: tuple[int, ...]


def is_free_list(read_page: Callable[[int], bytes], page_count: int, first: int, free_count: int) -> bool:
    """From page ``first`` on there are ``free_count`` free ones, those that list them counted. Page 1 never is."""
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
    """None: there is none on that page."""
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
