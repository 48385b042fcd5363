"""Writes and reads AMQP values, for frames that are not sent for each message, such as open, begin and attach.

A described value is read as `DescribedValue`; a symbol and a string are both read as str. Spec: AMQP 1.0 [1.6].
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mesh.bench.faults import Malformed

_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class DescribedValue:
    descriptor: Any
    value: Any


# Writing values.
NULL = b"\x40"
TRUE = b"\x41"
FALSE = b"\x42"


def boolean(value: bool) -> bytes:
    return TRUE if value else FALSE


def ubyte(value: int) -> bytes:
    return b"\x50" + value.to_bytes(1, "big")


def ushort(value: int) -> bytes:
    return b"\x60" + value.to_bytes(2, "big")


def uint(value: int) -> bytes:
    return b"\x70" + value.to_bytes(4, "big")


def string(text: str) -> bytes:
    return _sized(0xA1, text.encode())


def symbol(text: str) -> bytes:
    return _sized(0xA3, text.encode("ascii"))


def described(code: int, fields: Sequence[bytes]) -> bytes:
    """Write a list with a numeric descriptor, which is the form of all performatives and termini."""
    items = b"".join(fields)
    head = b"\x00\x53" + bytes([code])
    if len(items) < 255 and len(fields) < 256:
        return head + bytes([0xC0, len(items) + 1, len(fields)]) + items
    return head + struct.pack(">BII", 0xD0, len(items) + 4, len(fields)) + items


def _sized(constructor: int, data: bytes) -> bytes:
    if len(data) < 256:
        return bytes([constructor, len(data)]) + data
    return struct.pack(">BI", constructor + 0x10, len(data)) + data


# Reading values.
class ValueReader:
    """Reads AMQP values from bytes one after another, and never beyond the end of the bytes."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    def value(self, depth: int = _MAX_DEPTH) -> Any:
        """Read the next value. Raise Malformed for bytes that are not an AMQP value."""
        return self._of(self._take(1)[0], depth)

    def _of(self, constructor: int, depth: int) -> Any:
        if depth == 0:
            raise Malformed("not AMQP 1.0: values nested too deeply")
        if constructor == 0x00:
            return DescribedValue(self.value(depth - 1), self.value(depth - 1))
        if constructor in _FIXED:
            size, read = _FIXED[constructor]
            return read(self._take(size))
        if constructor in _SIZED:
            width, decode = _SIZED[constructor]
            return decode(self._take(self._number(width)))
        if constructor in _COMPOUND:
            width, make = _COMPOUND[constructor]
            return make(ValueReader(self._take(self._number(width))), width, depth)
        raise Malformed(f"not AMQP 1.0: unknown constructor 0x{constructor:02x}")

    def items(self, width: int, depth: int) -> list[Any]:
        return [self.value(depth - 1) for _ in range(self._count(width))]

    def array(self, width: int, depth: int) -> list[Any]:
        count = self._count(width)
        constructor = self._take(1)[0]
        return [self._of(constructor, depth - 1) for _ in range(count)]

    def _count(self, width: int) -> int:
        count = self._number(width)
        if count > len(self._data):
            raise Malformed(f"not AMQP 1.0: a list, map or array of {count} items in {len(self._data)} bytes")
        return count

    def _number(self, width: int) -> int:
        return int.from_bytes(self._take(width), "big")

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self._data):
            raise Malformed(
                "not AMQP 1.0: a value that ends beyond its frame, or beyond the list, map or array that it is in"
            )
        taken, self.at = self._data[self.at : end], end
        return taken


def _list(reader: ValueReader, width: int, depth: int) -> Any:
    return reader.items(width, depth)


def _map(reader: ValueReader, width: int, depth: int) -> Any:
    items = reader.items(width, depth)
    return [tuple(items[at : at + 2]) for at in range(0, len(items), 2)]


def _array(reader: ValueReader, width: int, depth: int) -> Any:
    return reader.array(width, depth)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _unsigned(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


_FIXED: dict[int, tuple[int, Callable[[bytes], Any]]] = {
    0x40: (0, lambda _: None),
    0x41: (0, lambda _: True),
    0x42: (0, lambda _: False),
    0x43: (0, lambda _: 0),
    0x44: (0, lambda _: 0),
    0x45: (0, lambda _: []),
    0x50: (1, _unsigned),
    0x51: (1, _signed),
    0x52: (1, _unsigned),
    0x53: (1, _unsigned),
    0x54: (1, _signed),
    0x55: (1, _signed),
    0x56: (1, lambda data: data != b"\x00"),
    0x60: (2, _unsigned),
    0x61: (2, _signed),
    0x70: (4, _unsigned),
    0x71: (4, _signed),
    0x72: (4, lambda data: struct.unpack(">f", data)[0]),
    0x73: (4, _text),
    0x74: (4, bytes),
    0x80: (8, _unsigned),
    0x81: (8, _signed),
    0x82: (8, lambda data: struct.unpack(">d", data)[0]),
    0x83: (8, _signed),
    0x84: (8, bytes),
    0x94: (16, bytes),
    0x98: (16, bytes),
}
_SIZED: dict[int, tuple[int, Callable[[bytes], Any]]] = {
    0xA0: (1, bytes),
    0xA1: (1, _text),
    0xA3: (1, _text),
    0xB0: (4, bytes),
    0xB1: (4, _text),
    0xB3: (4, _text),
}
_COMPOUND: dict[int, tuple[int, Callable[[ValueReader, int, int], Any]]] = {
    0xC0: (1, _list),
    0xD0: (4, _list),
    0xC1: (1, _map),
    0xD1: (4, _map),
    0xE0: (1, _array),
    0xF0: (4, _array),
}
