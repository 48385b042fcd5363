"""Reads the lines of a file from its end to its begin, a block at a time: no file is read whole.

A line that is longer than MAX_LINE_BYTES is cut. The offset of a line is that of its first byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

BLOCK_BYTES: Final = 64 * 1024
MAX_LINE_BYTES: Final = 64 * 1024


def lines_before(file: BinaryIO, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield offset and content of each line that begins before offset ``end``, the last first, without its newline.

    ``end`` is the begin of a line, or the size of the file; an empty line is left out.
    """
    at, rest = end, b""
    while at > 0:
        size = min(BLOCK_BYTES, at)
        at -= size
        file.seek(at)
        block = file.read(size) + rest
        first_break = block.find(b"\n")
        if at > 0 and first_break < 0:
            # The line began in an earlier block; its begin is what is kept of it.
            rest = block[:MAX_LINE_BYTES]
            continue
        begin = 0 if at == 0 else first_break + 1
        stop = len(block)
        while stop > begin:
            # The newline at the end of a line belongs to the line.
            found = block.rfind(b"\n", begin, stop - 1)
            line_begin = begin if found < 0 else found + 1
            line = block[line_begin:stop].rstrip(b"\r\n")
            if line:
                yield at + line_begin, line[:MAX_LINE_BYTES]
            stop = line_begin
        rest = block[:begin]


def offset_of(file: BinaryIO, is_before: Callable[[bytes], bool | None]) -> int:
    """Return the offset of the first line for which ``is_before`` is false, or the size of the file.

    Lines for which it is true come first in the file; a line for which it is None says nothing, as the text of a crash.
    Looks at some 20 lines of a file of 32 MiB.
    """
    size = file.seek(0, os.SEEK_END)
    low, high = 0, size
    while high - low > BLOCK_BYTES:
        middle = (low + high) // 2
        at, said = _first_said(file, middle, high, is_before)
        if said:
            low = at
        else:
            high = middle
    at = low
    file.seek(low)
    while at < size:
        line = file.readline(MAX_LINE_BYTES)
        if is_before(line) is False:
            return at
        at += len(line)
    return size


def _first_said(
    file: BinaryIO, middle: int, high: int, is_before: Callable[[bytes], bool | None]
) -> tuple[int, bool | None]:
    """Return the offset of the first line behind ``middle`` that says something, and what it says."""
    file.seek(middle)
    at = middle + len(file.readline(MAX_LINE_BYTES))
    while at < high:
        line = file.readline(MAX_LINE_BYTES)
        if (said := is_before(line)) is not None:
            return at, said
        at += len(line)
    return at, None
