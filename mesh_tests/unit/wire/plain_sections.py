"""How the head of a message is read, in plain Python: what the compiled `wire.sections` must agree with on any bytes.

Spec: AMQP 1.0 [3.2.1] header, [3.2.4] properties, [1.6] encodings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wire.errors import AmqpError
from wire.sections import Incomplete

HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES = 0x70, 0x71, 0x72, 0x73
DESCRIBED, SMALL_ULONG, ULONG = 0x00, 0x53, 0x80
LIST0, LIST8, LIST32 = 0x45, 0xC0, 0xD0
TEXTS = (0xA1, 0xB1, 0xA3, 0xB3)
DEFAULTS: dict[str, Any] = {
    "durable": False, "priority": 4, "ttl_s": None, "first_acquirer": False, "delivery_count": 0, "header_end": 0,
    "message_id": None, "to": None, "subject": None, "reply_to": None, "group_id": None,
}  # fmt: skip


def scan(message: bytes) -> dict[str, Any]:
    """The attributes of a MessageHead, by name."""
    reader = Reader(message)
    head = dict(DEFAULTS)
    while reader.offset < len(message):
        code = reader.descriptor()
        if code == HEADER:
            head.update(named(HEADER_FIELDS, reader.list()), header_end=reader.offset)
        elif code in (DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS):
            reader.skip()
        elif code == PROPERTIES:
            head.update(named(PROPERTY_FIELDS, reader.list()))
            break
        else:
            break
    return head


def boolean(value: Any) -> Any:
    return value if isinstance(value, bool) else None


def unsigned(most: int) -> Callable[[Any], Any]:
    return lambda value: value if type(value) is int and value <= most else None


def text(value: Any) -> Any:
    return value if isinstance(value, str) else None


def seconds(value: Any) -> Any:
    milliseconds = unsigned(0xFFFFFFFF)(value)
    return None if milliseconds is None else milliseconds / 1000


HEADER_FIELDS = {
    0: ("durable", boolean),
    1: ("priority", unsigned(0xFF)),
    2: ("ttl_s", seconds),
    3: ("first_acquirer", boolean),
    4: ("delivery_count", unsigned(0xFFFFFFFF)),
}
PROPERTY_FIELDS: dict[int, tuple[str, Callable[[Any], Any]]] = {
    0: ("message_id", lambda value: value.of_time if isinstance(value, Time) else value),
    2: ("to", text),
    3: ("subject", text),
    4: ("reply_to", text),
    10: ("group_id", text),
}


def named(known: dict[int, tuple[str, Callable[[Any], Any]]], values: list[Any]) -> dict[str, Any]:
    """What is absent, or no such field can be, leaves what was said before."""
    found = {known[index][0]: known[index][1](value) for index, value in enumerate(values) if index in known}
    return {name: value for name, value in found.items() if value is not None}


def malformed(what: str) -> AmqpError:
    return AmqpError("amqp:decode-error", f"not an AMQP message: {what}")


class Time:
    def __init__(self, raw: bytes) -> None:
        self.of_time = int.from_bytes(raw, "big")


class Reader:
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
        if self.uint(1) != DESCRIBED:
            raise malformed(f"no section begins at byte {self.offset - 1}")
        code = self.uint(1)
        if code == SMALL_ULONG:
            return self.uint(1)
        if code == ULONG:
            return self.uint(8)
        if code in (0xA3, 0xB3):  # symbolic descriptor: legal, and nobody sends it
            return SYMBOLIC.get(self.take(self.uint(1 if code == 0xA3 else 4)), 0)
        raise malformed(f"descriptor of type 0x{code:02x}")

    def list(self) -> list[Any]:
        code = self.uint(1)
        if code == LIST0:
            return []
        if code not in (LIST8, LIST32):
            raise malformed(f"expected a list, got type 0x{code:02x}")
        width = 1 if code == LIST8 else 4
        size = self.uint(width)
        end = self.offset + size
        if end > len(self.message):
            raise Incomplete
        count = self.uint(width)
        if count > size:
            raise malformed(f"a list of {count} items in {size} bytes")
        values = [self.value() for _ in range(count)]
        if self.offset != end:
            raise malformed("a list whose size does not fit its items")
        return values

    def value(self) -> Any:
        code = self.uint(1)
        decode = SCALARS.get(code)
        if decode is not None:
            size, make = decode
            return make(self.take(size))
        if code in TEXTS:
            raw = self.take(self.uint(1 if code < 0xB0 else 4))
            try:
                return raw.decode()
            except UnicodeDecodeError:
                raise malformed("a string that is not UTF-8") from None
        if code in (0xA0, 0xB0):
            return self.take(self.uint(1 if code == 0xA0 else 4))
        self.offset -= 1
        self.skip()
        return None

    def skip(self) -> None:
        """Step over one value of any type: the upper half of the code says how its size is given. [1.2]"""
        missing = 1
        while missing:
            code = self.uint(1)
            missing += 1 if code == DESCRIBED else -1
            if code == DESCRIBED:
                continue
            width = WIDTHS.get(code >> 4)
            if width is None:
                raise malformed(f"unknown type 0x{code:02x}")
            kind, size = width
            self.take(size if kind == "fixed" else self.uint(size))


WIDTHS = {
    0x4: ("fixed", 0), 0x5: ("fixed", 1), 0x6: ("fixed", 2), 0x7: ("fixed", 4), 0x8: ("fixed", 8), 0x9: ("fixed", 16),
    0xA: ("sized", 1), 0xB: ("sized", 4), 0xC: ("sized", 1), 0xD: ("sized", 4), 0xE: ("sized", 1), 0xF: ("sized", 4),
}  # fmt: skip
SYMBOLIC = {
    b"amqp:header:list": HEADER,
    b"amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    b"amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    b"amqp:properties:list": PROPERTIES,
}


def number(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


SCALARS: dict[int, tuple[int, Callable[[bytes], Any]]] = {
    0x40: (0, lambda raw: None),
    0x41: (0, lambda raw: True),
    0x42: (0, lambda raw: False),
    0x43: (0, lambda raw: 0),
    0x44: (0, lambda raw: 0),
    0x50: (1, number),
    0x52: (1, number),
    0x53: (1, number),
    0x56: (1, lambda raw: raw != b"\x00"),
    0x60: (2, number),
    0x70: (4, number),
    0x80: (8, number),
    0x83: (8, Time),
    0x98: (16, bytes),
}
