"""Messages as hypothesis makes them: whole ones in every encoding of the spec, and damaged ones.

Spec: AMQP 1.0 [1.6] encodings, [3.2] sections.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from mesh_tests.unit.wire.plain_sections import SYMBOLIC


def sized(code8: int, code32: int) -> Callable[[bytes, bool], bytes]:
    def encode(raw: bytes, is_long: bool) -> bytes:
        if is_long or len(raw) > 255:
            return bytes((code32,)) + len(raw).to_bytes(4, "big") + raw
        return bytes((code8, len(raw))) + raw

    return encode


def fixed(size: int, *codes: int) -> st.SearchStrategy[bytes]:
    return st.builds(
        lambda code, raw: bytes((code,)) + raw, st.sampled_from(codes), st.binary(min_size=size, max_size=size)
    )


STRING, SYMBOL, BINARY = sized(0xA1, 0xB1), sized(0xA3, 0xB3), sized(0xA0, 0xB0)
texts = st.builds(lambda text, is_long: STRING(text.encode(), is_long), st.text(max_size=12), st.booleans())
null_and_booleans = st.sampled_from([b"\x40", b"\x41", b"\x42", b"\x56\x00", b"\x56\x01"])
unsigned = st.one_of(
    st.sampled_from([b"\x43", b"\x44"]), fixed(1, 0x50, 0x52, 0x53), fixed(2, 0x60), fixed(4, 0x70), fixed(8, 0x80)
)
others = st.one_of(
    fixed(1, 0x51, 0x54, 0x55), fixed(2, 0x61), fixed(4, 0x71, 0x72, 0x73, 0x74), fixed(8, 0x81, 0x82, 0x83, 0x84),
    fixed(16, 0x94, 0x98),
    st.builds(BINARY, st.binary(max_size=8), st.booleans()),
    st.builds(SYMBOL, st.sampled_from([b"text/plain", b"\xff"]), st.booleans()),
    st.builds(STRING, st.binary(max_size=6), st.booleans()),
)  # fmt: skip
simple = st.one_of(null_and_booleans, unsigned, texts, others)


def compound(items: list[bytes], is_long: bool, code8: int = 0xC0, code32: int = 0xD0) -> bytes:
    raw = b"".join(items)
    if is_long or len(raw) > 254 or len(items) > 255:
        return bytes((code32,)) + (len(raw) + 4).to_bytes(4, "big") + len(items).to_bytes(4, "big") + raw
    return bytes((code8, len(raw) + 1, len(items))) + raw


values = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(compound, st.lists(inner, max_size=3), st.booleans()),
        st.builds(lambda key, value: compound([key, value], False, 0xC1, 0xD1), inner, inner),
        st.builds(lambda descriptor, value: b"\x00" + descriptor + value, inner, inner),
    ),
    max_leaves=6,
)
lists = st.one_of(st.just(b"\x45"), st.builds(compound, st.lists(values, max_size=13), st.booleans()))
_NAMES = {code: name for name, code in SYMBOLIC.items()}


def descriptor(code: int, form: int) -> bytes:
    match form:
        case 0:
            return bytes((0x00, 0x53, code))
        case 1:
            return b"\x00\x80" + code.to_bytes(8, "big")
        case _:
            return b"\x00" + SYMBOL(_NAMES.get(code, b"amqp:data:binary"), form == 2)


def section(code: int, body: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.builds(lambda form, value: descriptor(code, form) + value, st.integers(0, 3), body)


headers = section(
    0x70,
    st.one_of(
        lists,
        st.builds(
            compound,
            st.tuples(null_and_booleans, unsigned, unsigned, null_and_booleans, unsigned).map(list),
            st.booleans(),
        ),
    ),
)
properties = section(
    0x73,
    st.one_of(lists, st.builds(compound, st.lists(st.one_of(texts, values), min_size=11, max_size=13), st.booleans())),
)
whole = st.lists(
    st.one_of(headers, section(0x71, values), section(0x72, values), properties, section(0x75, values)), max_size=5
).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A whole one, cut, and with some bytes replaced."""
    message = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 3)) if message else 0):
        message[draw(st.integers(0, len(message) - 1))] = draw(st.integers(0, 255))
    return bytes(message[: draw(st.integers(0, len(message)))] if draw(st.booleans()) else message)


messages = st.one_of(st.binary(max_size=200), whole, damaged())
