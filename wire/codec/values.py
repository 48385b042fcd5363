"""AMQP values as Python values: decoding and encoding. [1.6]

| AMQP | Python |
|---|---|
| null, boolean, binary, string, long, double | None, bool, bytes, str, int, float |
| symbol, char, the other integers, float, timestamp (milliseconds), decimals | the classes below |
| uuid | uuid.UUID |
| list, map, array, described | list, dict (Pairs where a dict would lose keys), Array, Described |

Decoding takes well-formed bytes only: `wire.codec.scan` checks the bytes first.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wire.codec.faults import CodecFault
from wire.codec.scan import find_fault


class Symbol(str):
    __slots__ = ()


class Char(str):
    """An AMQP char: one character of Unicode."""

    __slots__ = ()


class UByte(int):
    __slots__ = ()


class UShort(int):
    __slots__ = ()


class UInt(int):
    __slots__ = ()


class ULong(int):
    __slots__ = ()


class Byte(int):
    __slots__ = ()


class Short(int):
    __slots__ = ()


class Int(int):
    __slots__ = ()


class Timestamp(int):
    """An AMQP timestamp: milliseconds since 1970."""

    __slots__ = ()


class Float(float):
    """An AMQP float, of 32 bits; a Python float is an AMQP double."""

    __slots__ = ()


class Decimal32(bytes):
    __slots__ = ()


class Decimal64(bytes):
    __slots__ = ()


class Decimal128(bytes):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Described:
    descriptor: ULong | Symbol
    value: Any


@dataclass(frozen=True, slots=True)
class Array:
    """An AMQP array. All elements have the same ``constructor``, and the same ``descriptor`` if they are described."""

    constructor: int
    elements: tuple[Any, ...]
    descriptor: ULong | Symbol | None = None


@dataclass(frozen=True, slots=True)
class Pairs:
    """An AMQP map as pairs of key and value, since a dict would lose some: two of its keys are equal in Python.

    Examples are a string and a symbol of the same characters, and numbers of two types.
    """

    items: tuple[tuple[Any, Any], ...]


NULL, TRUE, FALSE, UINT0, ULONG0, LIST0, BOOLEAN = 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x56
BINARY8, STRING8, SYMBOL8, BINARY32, STRING32, SYMBOL32 = 0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3
LIST8, MAP8, LIST32, MAP32, ARRAY8, ARRAY32 = 0xC0, 0xC1, 0xD0, 0xD1, 0xE0, 0xF0

_NUMBERS: dict[int, tuple[struct.Struct, Callable[[Any], Any]]] = {
    0x50: (struct.Struct(">B"), UByte),
    0x51: (struct.Struct(">b"), Byte),
    0x52: (struct.Struct(">B"), UInt),
    0x53: (struct.Struct(">B"), ULong),
    0x54: (struct.Struct(">b"), Int),
    0x55: (struct.Struct(">b"), int),
    0x60: (struct.Struct(">H"), UShort),
    0x61: (struct.Struct(">h"), Short),
    0x70: (struct.Struct(">I"), UInt),
    0x71: (struct.Struct(">i"), Int),
    0x72: (struct.Struct(">f"), Float),
    0x80: (struct.Struct(">Q"), ULong),
    0x81: (struct.Struct(">q"), int),
    0x82: (struct.Struct(">d"), float),
    0x83: (struct.Struct(">q"), Timestamp),
}
_CONSTANTS: dict[int, Any] = {NULL: None, TRUE: True, FALSE: False, UINT0: UInt(0), ULONG0: ULong(0)}
_OPAQUE: dict[int, tuple[int, type[bytes]]] = {0x74: (4, Decimal32), 0x84: (8, Decimal64), 0x94: (16, Decimal128)}
_CHAR, _UUID = 0x73, 0x98
_TEXTS: dict[int, Callable[[bytes], Any]] = {
    BINARY8: bytes,
    STRING8: bytes.decode,
    SYMBOL8: lambda raw: Symbol(raw.decode("ascii")),
}


# Decoding
def decode(encoded: bytes) -> Any:
    """Return the one value that ``encoded`` is the encoding of. Raises CodecFault for any other bytes."""
    fault = find_fault(encoded)
    if fault is not None:
        raise CodecFault("", fault)
    return take(encoded, 0)[0]


def take(encoded: bytes, at: int) -> tuple[Any, int]:
    """Return the well-formed value at ``at``, and the offset of its end."""
    code = encoded[at]
    if code == 0:
        descriptor, at = take(encoded, at + 1)
        value, at = take(encoded, at)
        return Described(descriptor, value), at
    return _take_body(code, encoded, at + 1)


def _take_body(code: int, encoded: bytes, at: int) -> tuple[Any, int]:
    if code in _CONSTANTS:
        return _CONSTANTS[code], at
    if code in _NUMBERS:
        form, kind = _NUMBERS[code]
        return kind(form.unpack_from(encoded, at)[0]), at + form.size
    if code >= BINARY8:
        return _take_sized(code, encoded, at)
    return _take_rest(code, encoded, at)


def _take_rest(code: int, encoded: bytes, at: int) -> tuple[Any, int]:
    if code == LIST0:
        return [], at
    if code == BOOLEAN:
        return encoded[at] != 0, at + 1
    if code == _CHAR:
        return Char(chr(int.from_bytes(encoded[at : at + 4], "big"))), at + 4
    if code == _UUID:
        return uuid.UUID(bytes=encoded[at : at + 16]), at + 16
    size, opaque = _OPAQUE[code]
    return opaque(encoded[at : at + size]), at + size


def _take_sized(code: int, encoded: bytes, at: int) -> tuple[Any, int]:
    width = 4 if code & 0x10 else 1
    size = int.from_bytes(encoded[at : at + width], "big")
    at += width
    end = at + size
    if code < LIST8:
        return _TEXTS[code & 0xEF](encoded[at:end]), end
    count = int.from_bytes(encoded[at : at + width], "big")
    at += width
    if code in (ARRAY8, ARRAY32):
        return _take_array(encoded, at, count), end
    values = []
    for _ in range(count):
        value, at = take(encoded, at)
        values.append(value)
    if code in (LIST8, LIST32):
        return values, end
    return _map_of(values), end


def _map_of(values: list[Any]) -> dict[Any, Any] | Pairs:
    """Return the map of ``values``, in which keys and values alternate: a dict, or Pairs if a dict would lose keys."""
    as_dict = dict(zip(values[::2], values[1::2], strict=True))
    if 2 * len(as_dict) == len(values):
        return as_dict
    return Pairs(tuple(zip(values[::2], values[1::2], strict=True)))


def _take_array(encoded: bytes, at: int, count: int) -> Array:
    descriptor = None
    if encoded[at] == 0:
        descriptor, at = take(encoded, at + 1)
    code = encoded[at]
    at += 1
    elements = []
    for _ in range(count):
        element, at = _take_body(code, encoded, at)
        elements.append(element)
    return Array(code, tuple(elements), descriptor)


# Encoding

# These are tuples of classes for `isinstance`, since a union such as `list | dict` would be made anew for each value.
_COMPOUND, _TEXT = (list, dict, Pairs, Array), (str, bytes)


def encode(value: Any) -> bytes:
    """Return ``value`` encoded in its shortest form.

    Raises CodecFault for a value without AMQP type or out of range.
    """
    if isinstance(value, Described):
        return b"\x00" + encode(value.descriptor) + encode(value.value)
    if isinstance(value, _COMPOUND):
        return _encode_compound(value)
    code = _constructor_of(value)
    return bytes([code]) + _encode_body(code, value)


def _encode_compound(value: list[Any] | dict[Any, Any] | Pairs | Array) -> bytes:
    if value == []:
        return bytes([LIST0])
    count, content = _content(value)
    is_short = count < 256 and len(content) < 255
    code = LIST8 if isinstance(value, list) else ARRAY8 if isinstance(value, Array) else MAP8
    return bytes([code if is_short else code | 0x10]) + _sized(count, content, 1 if is_short else 4)


def _content(value: list[Any] | dict[Any, Any] | Pairs | Array) -> tuple[int, bytes]:
    """Return the number of inner values of a compound value, and their encoding; each is encoded once, however deep."""
    if isinstance(value, Array):
        return len(value.elements), _encode_elements(value)
    values = value if isinstance(value, list) else _keys_and_values(value)
    return len(values), b"".join(encode(each) for each in values)


def _constructor_of(value: Any) -> int:
    """Return the code of the constructor that encodes ``value``, which is not compound, in the fewest bytes.

    Raises CodecFault for a value without an AMQP type.
    """
    if value is None:
        return NULL
    if isinstance(value, _TEXT):
        return _constructor_of_text(value)
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, int):
        return _constructor_of_integer(value)
    if isinstance(value, float):
        return 0x72 if isinstance(value, Float) else 0x82
    if isinstance(value, uuid.UUID):
        return _UUID
    raise CodecFault("", f"expected a value that AMQP can encode, got a {type(value).__name__}")


_SMALL = {UInt: (UINT0, 0x52, 0x70), ULong: (ULONG0, 0x53, 0x80)}
_SIGNED = {Int: (0x54, 0x71), int: (0x55, 0x81)}
_FIXED = {UByte: 0x50, Byte: 0x51, UShort: 0x60, Short: 0x61, Timestamp: 0x83}


def _constructor_of_integer(value: int) -> int:
    kind = type(value)
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in _SMALL:
        zero, small, large = _SMALL[kind]
        return zero if value == 0 else small if 0 < value < 256 else large
    small, large = _SIGNED.get(kind, _SIGNED[int])
    return small if -128 <= value < 128 else large


def _constructor_of_text(value: str | bytes) -> int:
    if isinstance(value, Char):
        return _CHAR
    if isinstance(value, str):
        short = SYMBOL8 if isinstance(value, Symbol) else STRING8
    else:
        for code, (_, opaque) in _OPAQUE.items():
            if isinstance(value, opaque):
                return code
        short = BINARY8
    return short if len(_raw(value)) < 256 else short | 0x10


def _keys_and_values(value: dict[Any, Any] | Pairs) -> list[Any]:
    pairs = value.items if isinstance(value, Pairs) else value.items()
    return [item for pair in pairs for item in pair]


def _raw(value: str | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return value.encode("ascii" if isinstance(value, Symbol) else "utf-8")
    except UnicodeEncodeError as error:
        raise CodecFault("", f"{value!r}: {error.reason}") from None


def _encode_body(code: int, value: Any) -> bytes:
    if code in _CONSTANTS or code == LIST0:
        return b""
    if code in _NUMBERS:
        try:
            return _NUMBERS[code][0].pack(value)
        except (struct.error, OverflowError) as error:
            raise CodecFault("", f"{value!r} is not in the range of its AMQP type: {error}") from None
    if code == BOOLEAN:
        return b"\x01" if value else b"\x00"
    if code == _CHAR:
        return ord(value).to_bytes(4, "big")
    if code == _UUID:
        return bytes(value.bytes)
    if code in _OPAQUE:
        return bytes(value)
    width = 4 if code & 0x10 else 1
    if code < LIST8:
        raw = _raw(value)
        return _number(len(raw), width) + raw
    return _sized(*_content(value), width)


def _encode_elements(array: Array) -> bytes:
    descriptor = b"" if array.descriptor is None else b"\x00" + encode(array.descriptor)
    bodies = b"".join(_encode_body(array.constructor, element) for element in array.elements)
    return descriptor + bytes([array.constructor]) + bodies


def _sized(count: int, content: bytes, width: int) -> bytes:
    return _number(len(content) + width, width) + _number(count, width) + content


def _number(value: int, width: int) -> bytes:
    try:
        return value.to_bytes(width, "big")
    except OverflowError:
        raise CodecFault(
            "", f"a value is too long to be encoded: its size or count {value} does not fit into {width} bytes"
        ) from None


def symbols(names: list[str] | tuple[str, ...]) -> Array:
    """Return an AMQP array of the symbols ``names``."""
    longest = max((len(name) for name in names), default=0)
    return Array(SYMBOL8 if longest < 256 else SYMBOL32, tuple(Symbol(name) for name in names))
