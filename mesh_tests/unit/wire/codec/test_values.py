"""Does the codec read and write what the engine reads and writes, and is everything else a fault?"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mesh_tests.unit.wire.codec.engine import reencode
from mesh_tests.unit.wire.codec.strategies import values
from wire.codec.faults import CodecFault
from wire.codec.scan import find_fault
from wire.codec.values import Described, Pairs, Symbol, UInt, ULong, decode, encode

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@unhurried
@given(values)
def test_a_value_comes_back_as_it_was(value):
    encoded = encode(value)
    assert decode(encoded) == value
    assert encode(decode(encoded)) == encoded


@unhurried
@given(values)
def test_the_engine_reads_what_the_codec_writes_and_the_codec_what_the_engine_writes(value):
    again = reencode(encode(value))
    assert again is not None
    assert decode(again) == decode(encode(value))


@unhurried
@given(values, st.data())
def test_every_cut_and_every_excess_is_a_fault(value, data):
    encoded = encode(value)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    assert find_fault(encoded[:cut]) is not None
    assert find_fault(encoded + b"\x40") is not None


@unhurried
@given(values, st.data())
def test_a_changed_byte_gives_a_fault_or_a_value_that_engine_and_codec_write_alike(value, data):
    encoded = bytearray(encode(value))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] = data.draw(st.integers(0, 255))
    if find_fault(encoded) is None:
        again = reencode(bytes(encoded))
        assert again is not None
        assert find_fault(again) is None


@given(st.binary(max_size=60))
def test_any_bytes_are_a_fault_or_a_value_that_can_be_read(raw):
    with contextlib.suppress(CodecFault):
        decode(raw)


@pytest.mark.parametrize(
    ("encoded", "sentence"),
    [
        ("", "no value"),
        ("e0 05 02 a3 01 61 01 62", "1 too early"),
        ("e0 07 02 a3 01 61 01 62", "1 too early"),
        ("e0 06 03 a3 01 61 01 62", "too early"),
        ("e0 06 01 a3 01 61 01 62", "content takes 4 bytes"),
        ("f0 00000006 00000002 a3 01 61 01 62", "content takes|too early"),
        ("e0 01 00", "size"),
        ("f0 00000005 ffffffff 40", "more than 32768 values"),
        ("f0 00000005 ffffffff 45", "more than 32768 values"),
        ("c0 02 02 40", "2 values in 1 bytes|too early"),
        ("c1 04 03 40 40 40", "even number"),
        ("c1 04 02 45 40 40", "compound|content"),
        ("a1 01 ff", "not UTF-8 from byte 0"),
        ("a1 03 61 c0 80", "not UTF-8 from byte 1"),
        ("a1 03 ed a0 80", "not UTF-8"),
        ("a3 01 80", "not ASCII"),
        ("73 00110000", "not a character"),
        ("73 0000d800", "not a character"),
        ("56 02", "not a boolean"),
        ("00 45 40", "descriptor"),
        ("00 00 53 01 40 40", "descriptor"),
        ("00 53 01 00 53 02 40", "described again"),
        ("e0 07 01 00 53 01 00 53 02 40", "described again|too early"),
        ("57 00", "not a constructor"),
        ("e0 02 00 57", "not a constructor"),
        ("00", "too early"),
        ("00 53", "too early"),
        ("00 53 01", "too early"),
    ],
)
def test_what_is_wrong_is_said(encoded, sentence):
    fault = find_fault(bytes.fromhex(encoded))
    assert fault is not None
    assert any(part in fault for part in sentence.split("|")), fault


def test_values_may_be_nested_so_deep_and_no_deeper():
    value = b"\x45"
    for _ in range(32):
        value = b"\xd0" + (len(value) + 4).to_bytes(4) + b"\x00\x00\x00\x01" + value
    assert find_fault(value) is None
    assert "32 deep" in find_fault(b"\xd0" + (len(value) + 4).to_bytes(4) + b"\x00\x00\x00\x01" + value)


@pytest.mark.parametrize("constructor", ["list", "map", "array"])
def test_a_value_is_encoded_in_one_pass_however_deep_it_is_nested(constructor: str):
    """2^31 passes over the innermost would never end."""
    value = {"list": b"\x45", "map": b"\x45", "array": b"\xe0\x02\x00\x40"}[constructor]
    for _ in range(31):
        match constructor:
            case "list":
                value = b"\xd0" + (len(value) + 4).to_bytes(4) + b"\x00\x00\x00\x01" + value
            case "map":
                value = b"\xd1" + (len(value) + 5).to_bytes(4) + b"\x00\x00\x00\x02\x40" + value
            case _:
                value = b"\xf0" + (len(value) + 4).to_bytes(4) + b"\x00\x00\x00\x01" + value
    assert decode(encode(decode(value))) == decode(value)


@pytest.mark.parametrize(
    "keys",
    [
        (1, UInt(1)),
        (True, 1, 1.0, ULong(1)),
        ("a", Symbol("a")),
        (Symbol("a"), Symbol("a")),
        (None, None),
    ],
)
def test_a_map_keeps_keys_that_are_equal_in_python(keys: tuple[object, ...]):
    whole = Pairs(tuple((key, number) for number, key in enumerate(keys)))
    encoded = encode([whole])
    assert encode(decode(encoded)) == encoded
    assert [type(key) for key, _ in decode(encoded)[0].items] == [type(key) for key in keys]


def test_what_has_no_type_cannot_be_encoded():
    for value in (object(), [object()], {1, 2}, Symbol("\xe9"), "\ud800", ULong(-1), 2**70):
        with pytest.raises(CodecFault):
            encode(value)


def test_a_described_value_keeps_its_descriptor():
    assert decode(bytes.fromhex("00 a3 01 61 40")) == Described(Symbol("a"), None)
