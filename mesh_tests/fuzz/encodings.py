"""AMQP encodings made by hand: well-formed values of every type, and hostile ones for any field. [1.2], [1.6]

Nothing here uses an engine or a codec of the project: a fuzzer that shared the decoder's view would share its faults.
Every function takes a `random.Random`, so that a seed is a case.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random

NULL, TRUE, FALSE, EMPTY_LIST = b"\x40", b"\x41", b"\x42", b"\x45"
DEEPEST = 3
LONG_BYTES = 40_000

Maker = Callable[[Random], bytes]


def uint(value: int) -> bytes:
    return b"\x70" + struct.pack(">I", value)


def ulong(value: int) -> bytes:
    return b"\x80" + struct.pack(">Q", value)


def ubyte(value: int) -> bytes:
    return b"\x50" + bytes([value])


def ushort(value: int) -> bytes:
    return b"\x60" + struct.pack(">H", value)


def _variable(short: int, long: int, content: bytes) -> bytes:
    if len(content) < 256:
        return bytes([short, len(content)]) + content
    return bytes([long]) + struct.pack(">I", len(content)) + content


def string(value: str) -> bytes:
    return _variable(0xA1, 0xB1, value.encode())


def symbol(value: str) -> bytes:
    return _variable(0xA3, 0xB3, value.encode())


def binary(value: bytes) -> bytes:
    return _variable(0xA0, 0xB0, value)


def compound(code: int, items: Sequence[bytes], *, count: int | None = None, surplus: int = 0) -> bytes:
    """A list32 (0xD0) or map32 (0xD1). ``count`` and ``surplus`` falsify the count and the size in bytes."""
    content = b"".join(items)
    size = max(0, len(content) + 4 + surplus)
    return bytes([code]) + struct.pack(">II", size, len(items) if count is None else count) + content


def list_of(*items: bytes) -> bytes:
    return compound(0xD0, items)


def map_of(*items: bytes) -> bytes:
    return compound(0xD1, items)


def described(descriptor: int, value: bytes) -> bytes:
    return b"\x00\x53" + bytes([descriptor]) + value


def array(
    constructor: bytes, elements: Sequence[bytes], *, surplus: int = 0, count: int | None = None, is_wide: bool = False
) -> bytes:
    """An array8 or array32. ``surplus`` is added to the true size, ``count`` replaces the true count."""
    content = constructor + b"".join(elements)
    number = len(elements) if count is None else count
    if is_wide:
        return b"\xf0" + struct.pack(">II", (len(content) + 4 + surplus) & 0xFFFFFFFF, number & 0xFFFFFFFF) + content
    return b"\xe0" + bytes([(len(content) + 1 + surplus) & 0xFF, number & 0xFF]) + content


def symbols(*values: str, surplus: int = 0, count: int | None = None, is_wide: bool = False) -> bytes:
    elements = [bytes([len(value)]) + value.encode() for value in values]
    return array(b"\xa3", elements, surplus=surplus, count=count, is_wide=is_wide)


# Well-formed values of any type
def any_value(random: Random, depth: int = 0) -> bytes:
    scalars: list[Maker] = [
        lambda random: NULL,
        lambda random: random.choice((TRUE, FALSE, b"\x56\x00", b"\x56\x01")),
        lambda random: random.choice((b"\x43", b"\x44", EMPTY_LIST)),
        lambda random: ubyte(random.randrange(256)),
        lambda random: ushort(random.randrange(1 << 16)),
        lambda random: uint(random.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))),
        lambda random: ulong(random.choice((0, 1, 1 << 31, 1 << 63, (1 << 64) - 1))),
        lambda random: b"\x51" + random.randbytes(1),
        lambda random: b"\x61" + random.randbytes(2),
        lambda random: random.choice((b"\x71", b"\x72", b"\x74")) + random.randbytes(4),
        lambda random: random.choice((b"\x81", b"\x82", b"\x83", b"\x84")) + random.randbytes(8),
        lambda random: b"\x73" + struct.pack(">I", random.choice((0x41, 0xE4, 0x10FFFF))),
        lambda random: random.choice((b"\x94", b"\x98")) + random.randbytes(16),
        lambda random: binary(random.randbytes(random.choice((0, 1, 255, 256)))),
        lambda random: string(random.choice(("", "a", "ä€😀", "x" * 300))),
        lambda random: symbol(random.choice(("", "amqp:accepted:list", "x" * 300))),
        lambda random: symbols("one", "two", is_wide=random.random() < 0.5),
    ]
    if depth >= DEEPEST or random.random() < 0.7:
        return random.choice(scalars)(random)
    items = [any_value(random, depth + 1) for _ in range(random.randrange(4))]
    match random.randrange(4):
        case 0:
            return list_of(*items)
        case 1:
            return map_of(*(part for item in items for part in (symbol(f"k{len(item)}"), item)))
        case 2:
            return b"\x00" + any_value(random, DEEPEST) + any_value(random, depth + 1)
        case _:
            return array(b"\x00\xa3\x01d\xa1", [b"\x01a", b"\x02bc"], is_wide=random.random() < 0.5)


def nested(random: Random) -> bytes:
    """Well-formed, and as deep as a peer may nest: lists, maps and arrays around one value."""
    value = any_value(random, DEEPEST)
    kind = random.randrange(4)
    for _ in range(random.choice((5, 12, 20, 27))):
        match random.randrange(3) if kind == 3 else kind:
            case 0:
                value = list_of(value)
            case 1:
                value = map_of(random.choice((NULL, uint(1), symbol("a"))), value)
            case _:
                value = array(value[:1], [value[1:]], is_wide=True) if value[:1] != b"\x00" else list_of(value)
    return value


# Hostile values
def false_array(random: Random) -> bytes:
    """An array whose size or count does not fit what it holds: of symbols, nested, described, or of no bytes."""
    surplus = random.choice((-300, -2, -1, 1, 2, 7, 300, 1 << 30))
    count = random.choice((None, 0, 1, 3, 255, 0xFFFFFFFF))
    is_wide = random.random() < 0.5
    match random.randrange(5):
        case 0:
            return symbols("a", "b", surplus=surplus, is_wide=is_wide)
        case 1:
            return symbols("a", "b", count=count, surplus=random.choice((0, surplus)), is_wide=is_wide)
        case 2:
            inner = symbols("a", surplus=surplus, is_wide=is_wide)
            return array(inner[:1], [inner[1:]], is_wide=random.random() < 0.5)
        case 3:
            return array(b"\x00\xa3\x01d\xa3", [b"\x01a"], surplus=surplus, is_wide=is_wide)
        case _:
            return array(random.choice((b"\x40", b"\x41", b"\x43", b"\x45")), [], count=0xFFFFFFFF, is_wide=True)


def false_compound(random: Random) -> bytes:
    """A list or map whose size or count is not that of its content."""
    items = [any_value(random) for _ in range(random.randrange(4))]
    code = random.choice((0xD0, 0xD1))
    count = random.choice((None, 0, 1, 3, 1 << 16, 0xFFFFFFFF))
    return compound(code, items, count=count, surplus=random.choice((-9, -1, 0, 1, 9, 1 << 30)))


def cut_short(random: Random) -> bytes:
    whole = any_value(random)
    return whole[: random.randrange(len(whole))]


def deep(random: Random) -> bytes:
    depth = random.choice((20, 200, 2_000))
    match random.randrange(3):
        case 0:
            return b"\x00\x53\x28" * depth + NULL
        case 1:
            value = NULL
            for _ in range(min(depth, 200)):
                value = list_of(value)
            return value
        case _:
            value = symbols("a", is_wide=True)
            for _ in range(min(depth, 200)):
                value = array(value[:1], [value[1:]], is_wide=True)
            return value


def bad_text(random: Random) -> bytes:
    content = random.choice((b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"a\x00b", b"\xe2\x82", b"|%7C|", b"\n{}"))
    return bytes([random.choice((0xA1, 0xA3))]) + bytes([len(content)]) + content


def false_length(random: Random) -> bytes:
    """A string, symbol or binary that says it is longer than its frame."""
    wide = bytes([random.choice((0xB0, 0xB1, 0xB3))]) + struct.pack(">I", random.choice((0xFFFFFFFF, 1 << 31, 70_000)))
    return random.choice((wide, bytes([random.choice((0xA0, 0xA1, 0xA3)), 255]))) + b"abc"


def unknown_constructor(random: Random) -> bytes:
    return bytes([random.choice((0x01, 0x3F, 0x46, 0x57, 0x62, 0x85, 0x9F, 0xA2, 0xC2, 0xD2, 0xE1, 0xFF))])


def long_value(random: Random) -> bytes:
    content = "L" * random.choice((300, 5_000, 15_000, 20_000, LONG_BYTES))
    return random.choice((string, symbol))(content)


HOSTILE: tuple[Maker, ...] = (
    false_array,
    false_array,
    false_compound,
    cut_short,
    deep,
    bad_text,
    false_length,
    unknown_constructor,
    long_value,
    any_value,
    any_value,
    lambda random: b"\x73" + struct.pack(">I", random.choice((0xD800, 0x110000, 0xFFFFFFFF))),
    lambda random: NULL,
    lambda random: random.randbytes(random.randrange(1, 12)),
)


def hostile_value(random: Random) -> bytes:
    return random.choice(HOSTILE)(random)
