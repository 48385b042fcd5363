"""Splits a message that comes in pieces into its body and all other sections, for clients that stream large bodies.

Spec: AMQP 1.0 [3.2] message format, [1.6] encodings. The body here is the content of data sections [3.2.6]; a body of
amqp-value or amqp-sequence sections stays with the other sections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

DESCRIBED = 0x00
DATA = 0x75
SMALL_ULONG, AFTER_SMALL_ULONG = b"\x53", 3
ULONG, AFTER_ULONG = b"\x80", 10


class NoSection(Exception):
    """An exception for bytes that do not begin a section of an AMQP message with a number as its descriptor."""


@dataclass(frozen=True, slots=True)
class Section:
    """Head of a section: its descriptor ``code``, the offset ``start`` of its value, and the length of its value."""

    code: int
    start: int
    size_bytes: int


class SectionSplitter:
    """Hands the bytes of data sections to ``on_body`` as the bytes come; ``finish`` returns all other bytes.

    Always: the bytes fed are body, head, and ``_rest``, in which no section has ended yet.
    """

    def __init__(self, on_body: Callable[[bytes], None]) -> None:
        self.has_body = False
        self._on_body = on_body
        self._head = bytearray()
        self._rest = bytearray()
        self._body_left_bytes = 0
        self._is_opaque = False

    def feed(self, piece: bytes) -> None:
        self._rest += piece
        while self._rest and not self._is_opaque and self._step():
            pass

    def finish(self) -> bytes:
        """Return the bytes of the message without its data sections.

        Bytes at the end that are no section, a cut section of another kind or the cut head of a data section stay, so
        that a decoder of the result finds the fault. A data section with a cut body leaves no trace in the result.
        """
        return bytes(self._head + self._rest)

    def _step(self) -> bool:
        """Move body bytes, or a whole section, out of ``_rest``; return False if that needs more bytes.

        False also for bytes that are no section, after which nothing more is split.
        """
        if self._body_left_bytes:
            return self._take_body()
        try:
            section = read_section(self._rest)
        except NoSection:
            self._is_opaque = True
            return False
        if section is None:
            return False
        if section.code == DATA:
            return self._begin_body(section)
        return self._take_section(section)

    def _begin_body(self, section: Section) -> bool:
        self.has_body = True
        self._body_left_bytes = section.size_bytes
        del self._rest[: section.start]
        return True

    def _take_body(self) -> bool:
        taken = bytes(self._rest[: self._body_left_bytes])
        del self._rest[: len(taken)]
        self._body_left_bytes -= len(taken)
        self._on_body(taken)
        return True

    def _take_section(self, section: Section) -> bool:
        end = section.start + section.size_bytes
        if len(self._rest) < end:
            return False
        self._head += self._rest[:end]
        del self._rest[:end]
        return True


def read_section(data: bytearray) -> Section | None:
    """Return the head of the section at the start of ``data``; None while bytes of the head are missing.

    Raises NoSection for bytes that do not begin a section.
    """
    at = _constructor_at(data)
    if len(data) <= at:
        return None
    width = _size_width(data[at])
    start = at + 1 + width
    if len(data) < start:
        return None
    size = int.from_bytes(data[at + 1 : start], "big") if width else _fixed_bytes(data[at])
    return Section(int.from_bytes(data[2:at], "big"), start, size)


def _constructor_at(data: bytearray) -> int:
    """Return the offset of the constructor of the section's value, which stands behind the section's descriptor.

    Raises NoSection if ``data`` does not begin with a descriptor that is a number.
    """
    if data[0] != DESCRIBED or data[1:2] not in (b"", SMALL_ULONG, ULONG):
        raise NoSection
    return AFTER_ULONG if data[1:2] == ULONG else AFTER_SMALL_ULONG


def _size_width(constructor: int) -> int:
    """Return how many bytes behind ``constructor`` give the length of the value; 0 for values of a fixed size. [1.6]

    Raises NoSection for a byte that is no constructor.
    """
    kind = constructor >> 4
    if kind < 0x4:
        raise NoSection
    return 0 if kind < 0xA else 4 if kind & 1 else 1


def _fixed_bytes(constructor: int) -> int:
    kind = constructor >> 4
    return 0 if kind == 0x4 else 1 << (kind - 5)
