"""Values of AMQP for hypothesis, in the codec's own types."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from wire.codec.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

names = st.text(st.characters(max_codepoint=127), max_size=20) | st.sampled_from(["", "x" * 255, "x" * 256])
symbols = names.map(Symbol)
descriptors = st.one_of(st.integers(0, 2**64 - 1).map(ULong), symbols)
scalars: dict[int, st.SearchStrategy[Any]] = {
    0x50: st.integers(0, 255).map(UByte),
    0x51: st.integers(-128, 127).map(Byte),
    0x60: st.integers(0, 2**16 - 1).map(UShort),
    0x61: st.integers(-(2**15), 2**15 - 1).map(Short),
    0x70: st.integers(0, 2**32 - 1).map(UInt),
    0x71: st.integers(-(2**31), 2**31 - 1).map(Int),
    0x72: st.floats(width=32, allow_nan=False).map(Float),
    0x73: st.characters(exclude_categories=["Cs"]).map(Char),
    0x74: st.binary(min_size=4, max_size=4).map(Decimal32),
    0x80: st.integers(0, 2**64 - 1).map(ULong),
    0x81: st.integers(-(2**63), 2**63 - 1),
    0x82: st.floats(allow_nan=False),
    0x83: st.integers(-(2**63), 2**63 - 1).map(Timestamp),
    0x84: st.binary(min_size=8, max_size=8).map(Decimal64),
    0x94: st.binary(min_size=16, max_size=16).map(Decimal128),
    0x98: st.uuids(),
    0xB0: st.binary(max_size=20) | st.sampled_from([bytes(255), bytes(256)]),
    0xB1: st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    0xB3: symbols,
}
any_scalar = st.one_of(st.none(), st.booleans(), *scalars.values())


@st.composite
def arrays(draw: Any, nested: bool = True) -> Array:
    """Of scalars, or of arrays of them."""
    descriptor = draw(st.one_of(st.none(), descriptors))
    if nested and draw(st.booleans()):
        inner = draw(st.sampled_from(sorted(scalars)))
        rows = draw(st.lists(st.lists(scalars[inner], max_size=3), max_size=3))
        return Array(0xF0, tuple(Array(inner, tuple(row)) for row in rows), descriptor)
    code = draw(st.sampled_from(sorted(scalars)))
    return Array(code, tuple(draw(st.lists(scalars[code], max_size=5))), descriptor)


def _grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(
            any_scalar.filter(lambda key: not isinstance(key, float) or math.isfinite(key)), inner, max_size=4
        ),
        st.builds(Described, descriptors, st.one_of(any_scalar, st.lists(inner, max_size=3))),
    )


values = st.recursive(st.one_of(any_scalar, arrays()), _grow, max_leaves=20)
