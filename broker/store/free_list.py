"""Do the pages that list the free ones say what can be? Led astray a broker would end, or write over what others have.

See the file format of SQLite, 1.5: such a page has the number of the next, a count, and as many numbers of free pages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

_HEAD = struct.Struct(">II")


def is_free_list(read_page: Callable[[int], bytes], page_count: int, first: int, free_count: int) -> bool:
    """From page ``first`` on there are ``free_count`` pages, each once. Page 1 is never free."""
    is_listed = bytearray(page_count + 1)
    is_listed[:2] = b"\1\1"
    found, page_number = 0, first
    while page_number:
        numbers = _numbers_on(page_number, read_page, page_count)
        if numbers is None:
            return False
        page_number, *listed = numbers
        for number in listed:
            if number > page_count or is_listed[number]:
                return False
            is_listed[number] = 1
        found += len(listed)
    return found == free_count


def _numbers_on(page_number: int, read_page: Callable[[int], bytes], page_count: int) -> list[int] | None:
    """Of the next such page, of this one, and of those that it lists; None where it is none."""
    if page_number > page_count:
        return None
    page = read_page(page_number)
    if len(page) < _HEAD.size:
        return None
    following, count = _HEAD.unpack_from(page)
    if count > len(page) // 4 - 2:
        return None
    return [following, page_number, *struct.unpack_from(f">{count}I", page, _HEAD.size)]
