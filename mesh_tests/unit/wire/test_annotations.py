"""Annotations are put in where they belong, and all else stays as it was."""

from __future__ import annotations

import pytest

from wire.annotations import with_annotations
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


def _without_header(message: bytes) -> bytes:
    return message[scan(message).header_end :]
