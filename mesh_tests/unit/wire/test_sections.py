"""The head of a message, against proton's own encoder, and against junk."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Message

from wire.errors import AmqpError
from wire.sections import Incomplete, scan, with_header


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


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_the_two_answers(junk: bytes):
    with contextlib.suppress(AmqpError, Incomplete):
        scan(junk)
