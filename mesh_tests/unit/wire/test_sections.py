"""The head of a message: against proton's own encoder, against the same in plain Python, and on hostile bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from proton import Message

from mesh_tests.unit.wire import encodings, plain_sections
from mesh_tests.unit.wire.compiled_sections import Edge
from mesh_tests.unit.wire.encodings import headers, messages, whole
from wire.errors import AmqpError
from wire.header import with_header
from wire.sections import Incomplete, scan


def test_reads_header_and_properties_of_a_real_message():
    message = Message(body="x" * 300, durable=True, priority=7, ttl=1.5, id="m1", address="orders", subject="s")
    message.reply_to = "back"
    message.group_id = "g"
    message.annotations = {"x-opt-a": [1, {"b": 2}]}
    message.delivery_count = 3
    head = scan(message.encode())
    assert (head.durable, head.priority, head.ttl_s, head.delivery_count) == (True, 7, 1.5, 3)
    assert (head.message_id, head.to, head.subject, head.reply_to, head.group_id) == ("m1", "orders", "s", "back", "g")


def test_a_message_without_header_has_the_defaults():
    head = scan(b"\x00\x53\x77\xa1\x01x")
    assert (head.durable, head.priority, head.ttl_s, head.header_end) == (False, 4, None, 0)


def test_a_new_header_leaves_the_rest_byte_for_byte():
    encoded = Message(body=b"body", durable=True, ttl=2.0, address="a").encode()
    changed = with_header(encoded, delivery_count=300)
    assert changed[scan(changed).header_end :] == encoded[scan(encoded).header_end :]
    decoded = Message()
    decoded.decode(changed)
    assert (decoded.delivery_count, decoded.durable, decoded.ttl, decoded.body) == (300, True, 2.0, b"body")


def test_a_cut_head_asks_for_more():
    encoded = Message(body="x", address="orders", id="m").encode()
    with pytest.raises(Incomplete):
        scan(encoded[: scan(encoded).header_end + 6])


def outcome_of(read: Callable[[bytes], Any], message: bytes) -> Any:
    """What it read, or what it raised and why."""
    try:
        return read(message)
    except (AmqpError, Incomplete) as error:
        return type(error), str(error)


def compiled(message: bytes) -> dict[str, Any]:
    head = scan(message)
    return {name: getattr(head, name) for name in plain_sections.DEFAULTS}


@settings(max_examples=400, deadline=None)
@given(messages)
def test_any_bytes_are_read_as_plain_python_reads_them(message: bytes):
    assert outcome_of(compiled, message) == outcome_of(plain_sections.scan, message)


@settings(deadline=None)
@given(whole)
def test_every_beginning_of_a_message_is_read_as_plain_python_reads_it(message: bytes):
    for end in range(len(message)):
        assert outcome_of(compiled, message[:end]) == outcome_of(plain_sections.scan, message[:end])


def test_the_strings_that_pass_are_those_that_are_utf8():
    beginnings = [bytes((first, second)) for first in range(256) for second in range(256)]
    edges = (
        b"",
        b"\x7f",
        b"\x80",
        b"\xbf",
        b"\xc0",
        b"\x80\x80",
        b"\xbf\xbf",
        b"\xbf\x7f",
        b"\xbf\xc0",
        b"\x80\x80\x80",
    )
    for text in (beginning + rest for beginning in beginnings for rest in edges):
        message = properties(b"\xa1" + bytes((len(text),)) + text)
        try:
            expected: Any = text.decode()
        except UnicodeDecodeError:
            expected = AmqpError, "amqp:decode-error: not an AMQP message: a string that is not UTF-8"
        assert outcome_of(lambda message: scan(message).message_id, message) == expected


def properties(*items: bytes) -> bytes:
    return b"\x00\x53\x73" + encodings.compound(list(items), False)


def header(*items: bytes) -> bytes:
    return b"\x00\x53\x70" + encodings.compound(list(items), False)


@pytest.mark.parametrize("depth", [10, 100_000])
def test_values_nested_without_end_are_asked_more_of_and_no_stack_overflows(depth: int):
    with pytest.raises(Incomplete):
        scan(b"\x00\x53\x72" + bytes(depth))


def test_a_field_of_another_type_or_beyond_its_range_is_as_if_absent():
    text, many = b"\xa1\x01x", b"\x80" + bytes(3 * (0xFF,)) + bytes(5)
    for wrong in (text, many, b"\x45", b"\x71\xff\xff\xff\xff"):
        head = scan(header(text, wrong, wrong, text, wrong))
        assert (head.durable, head.priority, head.ttl_s, head.delivery_count) == (False, 4, None, 0)
    head = scan(properties(b"\x43", b"\x40", b"\x43", b"\x41", b"\xa0\x01x"))
    assert (head.message_id, head.to, head.subject, head.reply_to) == (0, None, None, None)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (b"\x01", "no section begins at byte 0"),
        (b"\x00\x71", "descriptor of type 0x71"),
        (b"\x00\x53\x73\xa1\x00", "expected a list, got type 0xa1"),
        (b"\x00\x53\x73\xc0\x01\x09", "a list of 9 items in 1 bytes"),
        (b"\x00\x53\x73\xc0\x02\x01\xa0\x00", "a list whose size does not fit its items"),
        (b"\x00\x53\x73\xc0\x04\x01\xa1\x01\xff", "a string that is not UTF-8"),
        (b"\x00\x53\x73\xc0\x02\x01\x1f", "unknown type 0x1f"),
    ],
)
def test_what_is_no_message_is_refused_with_a_sentence(message: bytes, sentence: str):
    with pytest.raises(AmqpError, match=f"^amqp:decode-error: not an AMQP message: {sentence}$"):
        scan(message)


def test_a_head_cannot_be_changed():
    head = scan(header(b"\x41"))
    with pytest.raises(AttributeError):
        head.durable = False


@settings(max_examples=300, deadline=None)
@given(messages)
def test_the_bytes_behind_a_message_are_never_touched(message: bytes):
    with Edge() as edge:
        findings = {0: dict, 1: Incomplete}
        read = outcome_of(plain_sections.scan, message)
        kind = type(read) if isinstance(read, dict) else read[0]
        assert findings.get(edge.scan_head(message), AmqpError) is kind
        edge.priority_of(message)


@given(headers)
def test_the_priority_is_that_of_the_header(message: bytes):
    read = outcome_of(plain_sections.scan, message)
    with Edge() as edge:
        assert edge.priority_of(message) == (read["priority"] if isinstance(read, dict) else 4)


def test_without_a_header_the_priority_is_4():
    with Edge() as edge:
        assert [edge.priority_of(message) for message in (b"", b"\x00", properties(b"\xa1\x01x"), header())] == [
            4,
            4,
            4,
            4,
        ]
        assert edge.priority_of(header(b"\x41", b"\x50\x09")) == 9
