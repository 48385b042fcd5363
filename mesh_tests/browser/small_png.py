"""Makes screenshots small: PNG with a palette of at most 256 colours, in place of three bytes for each pixel.

Spec: PNG (Third Edition), W3C, 2025: chunks (5), filters (9), colour type 3 (11.2).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import count

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PALETTE = 256


def small_png(content: bytes) -> bytes:
    """Return a PNG of 8-bit RGB without interlacing as one with a palette. Colours that are alike become one."""
    chunks = list(_chunks(content))
    header = dict(chunks)[b"IHDR"]
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", header)
    assert (depth, colour, interlace) == (8, 2, 0)
    raw = zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT"))
    rows = list(_rows(raw, width * 3, height))
    for dropped in count():
        mask = 0xFF << dropped & 0xFF
        pixels = [[tuple(each & mask for each in row[at : at + 3]) for at in range(0, len(row), 3)] for row in rows]
        colours = sorted({pixel for row in pixels for pixel in row})
        if len(colours) <= PALETTE:
            break
    # The first true colour of each of the alike ones stands for all of them.
    true: dict[tuple[int, ...], tuple[int, ...]] = {}
    for row, masked in zip(rows, pixels, strict=True):
        for at, pixel in enumerate(masked):
            true.setdefault(pixel, tuple(row[at * 3 : at * 3 + 3]))
    index = {pixel: number for number, pixel in enumerate(colours)}
    lines = b"".join(b"\0" + bytes(index[pixel] for pixel in row) for row in pixels)
    palette = b"".join(bytes(true[pixel]) for pixel in colours)
    return SIGNATURE + b"".join(
        _chunk(name, data)
        for name, data in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            (b"PLTE", palette),
            (b"IDAT", zlib.compress(lines, 9)),
            (b"IEND", b""),
        )
    )


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at < len(content):
        (size,) = struct.unpack_from(">I", content, at)
        yield content[at + 4 : at + 8], content[at + 8 : at + 8 + size]
        at += size + 12


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _rows(raw: bytes, size: int, height: int) -> Iterator[bytes]:
    """Yield the rows without their filters."""
    above = bytes(size)
    for number in range(height):
        start = number * (size + 1)
        row = bytearray(raw[start + 1 : start + 1 + size])
        kind = raw[start]
        for at in range(size) if kind else ():
            left, up = (row[at - 3] if at >= 3 else 0), above[at]
            corner = above[at - 3] if at >= 3 else 0
            match kind:
                case 1:
                    guess = left
                case 2:
                    guess = up
                case 3:
                    guess = (left + up) // 2
                case _:
                    guess = _paeth(left, up, corner)
            row[at] = (row[at] + guess) & 0xFF
        above = bytes(row)
        yield above


def _paeth(left: int, up: int, corner: int) -> int:
    whole = left + up - corner
    return min((abs(whole - left), 0, left), (abs(whole - up), 1, up), (abs(whole - corner), 2, corner))[2]
