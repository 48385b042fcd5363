"""Annotations are put in where they belong, and all else stays as it was."""

from __future__ import annotations

import pytest
from hypothesis import given

from mesh_tests.unit.wire.codec.strategies import values
from wire.annotations import merged, with_annotations, with_encoded
from wire.codec.values import Described, Symbol, ULong
from wire.codec.values import decode as decode_value
from wire.codec.values import encode as encode_value
from wire.header import with_header
from wire.message import Message, decode, encode
from wire.sections import scan

ADDED = {"x-opt-reason": "full", "x-opt-count": 3}
PLAIN = encode(Message(body=b"body", message_id=7, subject="s"))
DELIVERY_ANNOTATIONS = b"\x00\x53\x71\xc1\x06\x02\xa3\x01a\x54\x01"


@pytest.mark.parametrize("prefix", [b"", DELIVERY_ANNOTATIONS], ids=["first", "behind delivery annotations"])
@pytest.mark.parametrize("has_header", [True, False])
def test_annotations_are_put_before_the_properties(prefix: bytes, has_header: bool) -> None:
    header = with_header(PLAIN, durable=True)[: -len(_without_header(PLAIN))] if has_header else b""
    rest = _without_header(PLAIN)
    changed = with_annotations(header + prefix + rest, ADDED)
    assert changed.startswith(header + prefix + b"\x00\x53\x72")
    assert changed.endswith(rest)
    assert decode(changed).annotations == ADDED


def test_those_that_are_there_stay_but_for_the_same_names() -> None:
    message = encode(Message(body="x", annotations={"mine": "yes", "x-opt-count": 1}))
    assert decode(with_annotations(message, ADDED)).annotations == {"mine": "yes", **ADDED}


def test_no_annotations_change_nothing() -> None:
    assert with_annotations(PLAIN, {}) == PLAIN


def test_annotations_that_cannot_be_read_stay_as_they_are() -> None:
    broken = b"\x00\x53\x72\xc1\x03\x02\xa3\x09" + _without_header(PLAIN)
    assert with_annotations(broken, ADDED) == broken


def test_a_key_that_is_there_twice_leaves_the_message_as_it_was() -> None:
    twice = b"\x00\x53\x72\xc1\x09\x04\xa3\x01a\x40\xa3\x01a\x40" + _without_header(PLAIN)
    assert with_annotations(twice, ADDED) == twice


@given(values)
def test_a_value_of_any_type_is_added_as_the_consumer_said_it(value: object) -> None:
    section = merged(merged(b"", {"x-first": 1}), {"x-value": value, "x-opt-amqpmesh-own": 1})
    assert section == encode_value(Described(ULong(0x72), {Symbol("x-first"): 1, Symbol("x-value"): value}))
    message = with_encoded(PLAIN, section)
    head = scan(message)
    assert decode_value(message[head.annotations_start : head.annotations_end]) == decode_value(section)
    assert message.endswith(_without_header(PLAIN))


@given(values)
def test_a_value_of_any_type_that_is_there_stays_as_it_was(value: object) -> None:
    section = encode_value(Described(ULong(0x72), {ULong(7): value}))
    changed = with_annotations(section + _without_header(PLAIN), {"x-count": 1})
    added = encode_value(Described(ULong(0x72), {ULong(7): value, Symbol("x-count"): ULong(1)}))
    assert changed == added + _without_header(PLAIN)


def _without_header(message: bytes) -> bytes:
    return message[scan(message).header_end :]
