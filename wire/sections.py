"""What a message says before its body: the header, and the fields of properties that routing and storing depend on.

Spec: AMQP 1.0 [3.2.1] header, [3.2.4] properties, [1.6] encodings. Bodies are never read. Times become seconds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from wire.errors import AmqpError

_HEADER, _DELIVERY_ANNOTATIONS, _MESSAGE_ANNOTATIONS, _PROPERTIES = 0x70, 0x71, 0x72, 0x73
_DEFAULT_PRIORITY = 4
_DESCRIBED, _SMALL_ULONG, _ULONG = 0x00, 0x53, 0x80
_LIST0, _LIST8, _LIST32 = 0x45, 0xC0, 0xD0


@dataclass(frozen=True, slots=True)
class MessageHead:
    """Header and properties as far as they were asked for; absent fields have the spec's defaults."""

    durable: bool = False
    priority: int = _DEFAULT_PRIORITY
    ttl_s: float | None = None
    first_acquirer: bool = False
    delivery_count: int = 0
    header_end: int = 0
    """Offset of the first byte behind the header section; 0 when there is none."""
    message_id: Any = None
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    group_id: str | None = None


class Incomplete(Exception):
    """The bytes end before the head does: more of the delivery is needed."""


def scan(message: bytes) -> MessageHead:
    """Read the head of an encoded message.

    Raises Incomplete when ``message`` is cut within it, AmqpError `amqp:decode-error` when it is no AMQP message.
    """
    reader = _Reader(message)
    head: dict[str, Any] = {}
    while reader.offset < len(message):
        code = reader.descriptor()
        if code == _HEADER:
            head.update(_named(_HEADER_FIELDS, reader.list()))
            head["header_end"] = reader.offset
        elif code in (_DELIVERY_ANNOTATIONS, _MESSAGE_ANNOTATIONS):
            reader.skip()
        elif code == _PROPERTIES:
            head.update(_named(_PROPERTY_FIELDS, reader.list()))
            break
        else:
            break
    ttl_ms = head.pop("ttl", None)
    if ttl_ms is not None:
        head["ttl_s"] = ttl_ms / 1000
    return MessageHead(**head)


def with_header(message: bytes, head: MessageHead | None = None, **changes: Any) -> bytes:
    """``message`` with a header that says what ``changes`` say (field names of MessageHead); the rest as it was."""
    head = replace(head or scan(message), **changes)
    return encode_header(head) + message[head.header_end :]


def encode_header(head: MessageHead) -> bytes:
    """The header section alone. [3.2.1]"""
    ttl = b"\x40" if head.ttl_s is None else struct.pack(">BI", 0x70, min(int(head.ttl_s * 1000), 0xFFFFFFFF))
    body = b"".join(
        (
            b"\x41" if head.durable else b"\x42",
            bytes((0x50, head.priority)),
            ttl,
            b"\x41" if head.first_acquirer else b"\x42",
            b"\x43" if head.delivery_count == 0 else struct.pack(">BI", 0x70, head.delivery_count),
        )
    )
    return bytes((_DESCRIBED, _SMALL_ULONG, _HEADER, _LIST8, len(body) + 1, 5)) + body


_HEADER_FIELDS = ("durable", "priority", "ttl", "first_acquirer", "delivery_count")
_PROPERTY_FIELDS = (
    "message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type", "content_encoding",
    "absolute_expiry_time", "creation_time", "group_id",
)  # fmt: skip
_WANTED = frozenset(field.name for field in fields(MessageHead)) | {"ttl"}


def _named(names: tuple[str, ...], values: list[Any]) -> dict[str, Any]:
    return {name: value for name, value in zip(names, values, strict=False) if value is not None and name in _WANTED}


def _malformed(what: str) -> AmqpError:
    return AmqpError("amqp:decode-error", f"not an AMQP message: {what}")


class _Reader:
    """The few encodings that stand before a body. [1.6]"""

    __slots__ = ("message", "offset")

    def __init__(self, message: bytes) -> None:
        self.message = message
        self.offset = 0

    def take(self, size: int) -> bytes:
        end = self.offset + size
        if end > len(self.message):
            raise Incomplete
        piece = self.message[self.offset : end]
        self.offset = end
        return piece

    def uint(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def descriptor(self) -> int:
        if self.uint(1) != _DESCRIBED:
            raise _malformed(f"byte {self.offset - 1} starts no section")
        code = self.uint(1)
        if code == _SMALL_ULONG:
            return self.uint(1)
        if code == _ULONG:
            return self.uint(8)
        if code in (0xA3, 0xB3):  # symbolic descriptor: legal, and nobody sends it
            return _SYMBOLIC.get(self.take(self.uint(1 if code == 0xA3 else 4)), 0)
        raise _malformed(f"descriptor of type 0x{code:02x}")

    def list(self) -> list[Any]:
        code = self.uint(1)
        if code == _LIST0:
            return []
        if code not in (_LIST8, _LIST32):
            raise _malformed(f"a list was expected, not type 0x{code:02x}")
        width = 1 if code == _LIST8 else 4
        size = self.uint(width)
        end = self.offset + size
        if end > len(self.message):
            raise Incomplete
        count = self.uint(width)
        if count > size:
            raise _malformed(f"a list of {count} items in {size} bytes")
        values = [self.value() for _ in range(count)]
        if self.offset != end:
            raise _malformed("a list whose size does not fit its items")
        return values

    def value(self) -> Any:
        code = self.uint(1)
        decode = _SCALARS.get(code)
        if decode is not None:
            size, make = decode
            return make(self.take(size))
        if code in (0xA1, 0xB1, 0xA3, 0xB3):
            raw = self.take(self.uint(1 if code < 0xB0 else 4))
            try:
                return raw.decode()
            except UnicodeDecodeError:
                raise _malformed("a string that is not UTF-8") from None
        if code in (0xA0, 0xB0):
            return self.take(self.uint(1 if code == 0xA0 else 4))
        self.offset -= 1
        self.skip()
        return None

    def skip(self) -> None:
        """Step over one value of any type: the upper half of the code says how its size is given. [1.2]"""
        code = self.uint(1)
        if code == _DESCRIBED:
            self.skip()
            self.skip()
            return
        width = _WIDTHS.get(code >> 4)
        if width is None:
            raise _malformed(f"unknown type 0x{code:02x}")
        kind, size = width
        self.take(size if kind == "fixed" else self.uint(size))


_WIDTHS = {
    0x4: ("fixed", 0), 0x5: ("fixed", 1), 0x6: ("fixed", 2), 0x7: ("fixed", 4), 0x8: ("fixed", 8), 0x9: ("fixed", 16),
    0xA: ("sized", 1), 0xB: ("sized", 4), 0xC: ("sized", 1), 0xD: ("sized", 4), 0xE: ("sized", 1), 0xF: ("sized", 4),
}  # fmt: skip
_SYMBOLIC = {
    b"amqp:header:list": _HEADER,
    b"amqp:delivery-annotations:map": _DELIVERY_ANNOTATIONS,
    b"amqp:message-annotations:map": _MESSAGE_ANNOTATIONS,
    b"amqp:properties:list": _PROPERTIES,
}


def _unsigned(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


_SCALARS: dict[int, tuple[int, Callable[[bytes], Any]]] = {
    0x40: (0, lambda raw: None),
    0x41: (0, lambda raw: True),
    0x42: (0, lambda raw: False),
    0x43: (0, lambda raw: 0),
    0x44: (0, lambda raw: 0),
    0x50: (1, _unsigned),
    0x52: (1, _unsigned),
    0x53: (1, _unsigned),
    0x56: (1, lambda raw: raw != b"\x00"),
    0x60: (2, _unsigned),
    0x70: (4, _unsigned),
    0x80: (8, _unsigned),
    0x83: (8, _unsigned),
    0x98: (16, bytes),
}
