"""Decodes and encodes whole AMQP frames. [2.3]

+--------+------+------+-----------+--------------+---------+
| size 4 | doff | type | channel 2 | performative | payload |
+--------+------+------+-----------+--------------+---------+
  octets    2     0=AMQP
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from wire.codec import table
from wire.codec.composites import check
from wire.codec.faults import CodecFault
from wire.codec.table import BY_CODE, NESTED, Composite, FieldType
from wire.codec.values import Array, Described, Symbol, UByte, UInt, ULong, UShort, encode, take

HEADER_BYTES = 8
AMQP, SASL = 0, 1

_INTEGERS: dict[FieldType, type[int]] = {
    FieldType.UBYTE: UByte,
    FieldType.USHORT: UShort,
    FieldType.LOOSE_USHORT: UShort,
    FieldType.UINT: UInt,
    FieldType.ULONG: ULong,
}


@dataclass(frozen=True, slots=True)
class CompositeValue:
    """A value of a composite type, such as a performative: the values of its fields by name, without null fields."""

    type: Composite
    fields: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """Return the value of the field ``name``; None for a null field."""
        return self.fields.get(name)


@dataclass(frozen=True, slots=True)
class AmqpFrame:
    """An AMQP frame, decoded. Without a ``performative`` the frame is a heartbeat. [2.4.5]"""

    channel: int
    performative: CompositeValue | None = None
    payload: bytes = b""
    type: int = AMQP


def encode_frame(frame: AmqpFrame) -> bytes:
    """Return the bytes of ``frame``. Raises CodecFault for a field that is unknown, missing or of the wrong type."""
    body = b"" if frame.performative is None else encode_record(frame.performative)
    if body:
        check(body)
    body += frame.payload
    return struct.pack(">IBBH", HEADER_BYTES + len(body), 2, frame.type, frame.channel) + body


def encode_record(record: CompositeValue) -> bytes:
    return encode(_described(record))


def _described(record: CompositeValue) -> Described:
    rules = record.type.fields
    unknown = record.fields.keys() - {rule.name for rule in rules}
    if unknown:
        raise CodecFault(record.type.name, f"the caller gave a field {min(unknown)!r}, which this type does not have")
    values = [_plain(rule.type, record.fields.get(rule.name)) for rule in rules]
    while values and values[-1] is None:
        values.pop()
    return Described(ULong(record.type.code), values)


def _plain(kind: FieldType, value: Any) -> Any:
    if isinstance(value, CompositeValue):
        return _described(value)
    if kind in _INTEGERS and isinstance(value, int) and not isinstance(value, bool):
        return _INTEGERS[kind](value)
    if kind is FieldType.SYMBOL and isinstance(value, str):
        return Symbol(value)
    return value


def decode_frame(encoded: bytes) -> AmqpFrame:
    """Return the frame that ``encoded``, the bytes of one whole frame, stands for.

    Raises CodecFault for bytes that are not a frame with a valid performative.
    """
    if len(encoded) < HEADER_BYTES:
        raise CodecFault("", f"expected a frame of at least {HEADER_BYTES} bytes, got {len(encoded)}")
    size, offset, kind, channel = struct.unpack_from(">IBBH", encoded)
    if size != len(encoded) or not HEADER_BYTES <= 4 * offset <= size:
        raise CodecFault(
            "", f"the frame has {len(encoded)} bytes, which do not fit its size {size} and its data offset {offset}"
        )
    body = encoded[4 * offset :]
    if not body:
        return AmqpFrame(channel, type=kind)
    _, end = check(body)
    described, _ = take(body, 0)
    return AmqpFrame(channel, _record(described), body[end:], kind)


def _record(described: Described) -> CompositeValue:
    composite = BY_CODE[described.descriptor]  # type: ignore[index]  # `check` accepts only numbers as descriptors
    pairs = zip(composite.fields, described.value, strict=False)
    return CompositeValue(
        composite, {rule.name: _nested(rule.type, value) for rule, value in pairs if value is not None}
    )


def _nested(kind: FieldType, value: Any) -> Any:
    return _record(value) if kind in NESTED else value


# Values of fields
def error(condition: str, description: str) -> CompositeValue:
    return CompositeValue(table.ERROR, {"condition": condition, "description": description})


def symbols_of(value: Any) -> tuple[str, ...]:
    """Return the symbols in the value of a field that may hold none, one symbol or several. [1.4]"""
    if value is None:
        return ()
    if isinstance(value, Array):
        return tuple(str(each) for each in value.elements)
    return tuple(str(each) for each in value) if isinstance(value, list) else (str(value),)
