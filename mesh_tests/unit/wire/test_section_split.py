"""The body of a message is told from the rest however the message is cut."""

from dataclasses import replace

import pytest
from proton import Message as ProtonMessage

from wire.message import Message, decode, encode, encode_head
from wire.section_split import SectionSplitter

PROPERTIES = Message(b"body" * 100, subject="s", message_id="m", properties={"n": 1}, annotations={"x-opt": 3})


def split(data: bytes, piece_bytes: int) -> tuple[bytes, bytes, bool]:
    body = bytearray()
    splitter = SectionSplitter(body.extend)
    for start in range(0, len(data), piece_bytes):
        splitter.feed(data[start : start + piece_bytes])
    return splitter.finish(), bytes(body), splitter.has_body


@pytest.mark.parametrize("piece_bytes", [1, 2, 7, 100, 1000])
def test_the_body_is_handed_out_and_the_rest_is_a_message_without_it(piece_bytes: int) -> None:
    head, body, has_body = split(encode(PROPERTIES), piece_bytes)
    assert has_body
    assert body == b"body" * 100
    assert decode(head) == replace(PROPERTIES, body=None)


@pytest.mark.parametrize("piece_bytes", [1, 5, 1000])
def test_several_data_sections_are_one_body_and_a_footer_is_none(piece_bytes: int) -> None:
    footer = b"\x00\x80\0\0\0\0\0\0\0\x78\xc1\x01\x00"
    data = encode(Message(b"one", subject="s")) + b"\x00\x53\x75\xb0\0\0\0\x03two" + footer
    head, body, _ = split(data, piece_bytes)
    assert body == b"onetwo"
    assert head.endswith(footer)


@pytest.mark.parametrize("body", ["text", None, 7, {"a": 1}, [1, 2]])
@pytest.mark.parametrize("piece_bytes", [1, 1000])
def test_a_body_that_is_no_data_stays_where_it_is(body: object, piece_bytes: int) -> None:
    data = encode(Message(body, subject="s"))
    assert split(data, piece_bytes) == (data, b"", False)


@pytest.mark.parametrize(
    "data", [b"garbage", b"\x00\xa3\x05", b"\x00\x53\x75\x12xx", b"\x00\x53\x70\xd0\xff\xff\xff\xffx"]
)
@pytest.mark.parametrize("piece_bytes", [1, 1000])
def test_what_is_no_message_or_is_cut_comes_out_as_it_was(data: bytes, piece_bytes: int) -> None:
    assert split(data, piece_bytes) == (data, b"", False)


def test_an_encoded_head_with_its_body_is_the_message() -> None:
    data = encode_head(replace(PROPERTIES, body=None), 70_000) + b"x" * 70_000
    assert decode(data) == replace(PROPERTIES, body=b"x" * 70_000)
    decoded = ProtonMessage()
    decoded.decode(data)
    assert len(decoded.body) == 70_000
