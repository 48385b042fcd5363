"""Addressed bodies: the message with its address, and the message as it was published."""

from __future__ import annotations

import random

import pytest

from broker.store.addressed import addressed, as_published, lead_bytes
from mesh_tests.unit.wire.test_delivery_address import random_message
from wire.delivery_address import with_delivery_address

ADDRESS = b"dev/a"
PLAIN, CUT = 0, -1


@pytest.mark.parametrize("seed", range(200))
def test_an_addressed_body_has_the_message_with_and_without_the_address(seed: int) -> None:
    message = b"".join(random_message(random.Random(seed)).values())
    body = addressed(message, ADDRESS)
    assert body[lead_bytes(body) :] == with_delivery_address(message, ADDRESS)
    assert as_published(body) == message
    assert lead_bytes(message) == PLAIN
    assert as_published(message) == message


@pytest.mark.parametrize("seed", range(20))
def test_the_first_bytes_are_enough_once_they_have_the_delivery_annotations(seed: int) -> None:
    message = b"".join(random_message(random.Random(seed)).values()) + bytes(1000)
    body = addressed(message, ADDRESS)
    whole = body.index(b"x-opt-to\xa1\x05dev/a", lead_bytes(body)) + len(b"x-opt-to\xa1\x05dev/a")
    for size in range(13, whole):
        assert lead_bytes(body[:size]) == CUT
    for size in (whole, whole + 1, len(body) - 1):
        assert lead_bytes(body[:size]) == lead_bytes(body)
        assert message.startswith(as_published(body[:size]))
        assert as_published(body[:size]) + body[size:] == message


@pytest.mark.parametrize(
    "body", [b"", b"\x01", b"\x01" * 12, b"\x01" + bytes(20), b"\x00\x53\x75\xa0\x00", b"\x02" * 40]
)
def test_bytes_without_a_lead_are_plain(body: bytes) -> None:
    assert lead_bytes(body) == PLAIN
    assert as_published(body) == body
