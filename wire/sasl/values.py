"""Reads and writes the AMQP values that SASL frames consist of, and no others.

A symbol, and an array of symbols, is read as a tuple of names: a single value may stand for an array of length 1. [1.4]
Spec: AMQP 1.0 [1.6] primitive types and their constructors.
"""

from __future__ import annotations

import struct

Value = None | int | bytes | str | tuple[str, ...]
Descriptor = int | str

_MAX_ITEMS = 256


class ValueFault(Exception):
    """An exception for bytes that are not a value that a SASL frame may have."""


class SaslReader:
    """Reads the values of one SASL frame's body, one after the other; raises ValueFault for malformed bytes.

    Always: ``0 <= _at <= len(_data)``, and no byte past the end is read.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def described_list(self) -> tuple[Descriptor, list[Value]]:
        if self._uint(1) != 0x00:
            raise ValueFault("expected a SASL performative, got a value without a descriptor")
        return self._descriptor(), self._list()

    def expect_end(self) -> None:
        if self._at != len(self._data):
            raise ValueFault(f"{len(self._data) - self._at} bytes follow the last value of the frame, list or array")

    def _descriptor(self) -> Descriptor:
        match self._uint(1):
            case 0x53:
                return self._uint(1)
            case 0x80:
                return self._uint(8)
            case 0xA3:
                return _ascii(self._take(self._uint(1)))
            case 0xB3:
                return _ascii(self._take(self._uint(4)))
            case constructor:
                raise ValueFault(
                    f"expected a number or symbol as the descriptor of the frame, got type 0x{constructor:02x}"
                )

    def _list(self) -> list[Value]:
        match self._uint(1):
            case 0x45:
                return []
            case 0xC0:
                width = 1
            case 0xD0:
                width = 4
            case constructor:
                raise ValueFault(f"expected the fields of the frame as a list, got type 0x{constructor:02x}")
        inner = SaslReader(self._take(self._uint(width)))
        values = [inner._value() for _ in range(inner._count(width))]
        inner.expect_end()
        return values

    def _value(self) -> Value:
        match self._uint(1):
            case 0x40:
                return None
            case 0x50:
                return self._uint(1)
            case 0xA0:
                return self._take(self._uint(1))
            case 0xB0:
                return self._take(self._uint(4))
            case 0xA1:
                return _utf8(self._take(self._uint(1)))
            case 0xB1:
                return _utf8(self._take(self._uint(4)))
            case 0xA3:
                return (_ascii(self._take(self._uint(1))),)
            case 0xB3:
                return (_ascii(self._take(self._uint(4))),)
            case 0xE0:
                return self._symbols(1)
            case 0xF0:
                return self._symbols(4)
            case constructor:
                raise ValueFault(f"a value has type 0x{constructor:02x}, which no field of a SASL frame has")

    def _symbols(self, width: int) -> tuple[str, ...]:
        inner = SaslReader(self._take(self._uint(width)))
        count = inner._count(width)
        constructor = inner._uint(1)
        if constructor not in (0xA3, 0xB3):
            raise ValueFault(f"expected an array of symbols, got an array of type 0x{constructor:02x}")
        symbol_width = 1 if constructor == 0xA3 else 4
        names = tuple(_ascii(inner._take(inner._uint(symbol_width))) for _ in range(count))
        inner.expect_end()
        return names

    def _count(self, width: int) -> int:
        count = self._uint(width)
        if count > _MAX_ITEMS:
            raise ValueFault(f"expected at most {_MAX_ITEMS} items in a list or array, got {count}")
        return count

    def _uint(self, width: int) -> int:
        return int.from_bytes(self._take(width), "big")

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise ValueFault(f"the frame, list or array ends {end - len(self._data)} bytes too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken


def encode_list(descriptor: int, values: list[Value]) -> bytes:
    """Return the encoding of a list of ``values``, described by ``descriptor``, without the nulls at its end. [1.4]"""
    while values and values[-1] is None:
        values = values[:-1]
    items = b"".join(_encode(value) for value in values)
    return b"\x00\x53" + bytes([descriptor]) + _compound(0xC0, 0xD0, len(values), items)


def _encode(value: Value) -> bytes:
    match value:
        case None:
            return b"\x40"
        case int():
            return bytes([0x50, value])
        case bytes():
            return _sized(0xA0, value)
        case str():
            return _sized(0xA1, value.encode())
        case (name,):
            return _sized(0xA3, name.encode("ascii"))
        case names:
            symbols = [name.encode("ascii") for name in names]
            return _compound(0xE0, 0xF0, len(names), b"\xa3" + b"".join(bytes([len(s)]) + s for s in symbols))


def _sized(short_constructor: int, data: bytes) -> bytes:
    if len(data) < 256:
        return bytes([short_constructor, len(data)]) + data
    return struct.pack(">BI", short_constructor + 0x10, len(data)) + data


def _compound(short_constructor: int, long_constructor: int, count: int, items: bytes) -> bytes:
    if len(items) < 255 and count < 256:
        return bytes([short_constructor, len(items) + 1, count]) + items
    return struct.pack(">BII", long_constructor, len(items) + 4, count) + items


def _ascii(data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise ValueFault("a symbol in the frame has a byte outside of ASCII") from None


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueFault("a string in the frame is not UTF-8") from None
