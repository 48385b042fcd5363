"""Whole messages as JSON and back, and bytes that are no message."""

import json
from typing import Any

import proton
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_tests.unit.wire.codec.strategies import values
from wire.codec.values import Described, Symbol, Timestamp, UInt, ULong, encode
from wire.message import Message
from wire.message import encode as encode_proton
from wire.message_json import MessageJsonError, body_to_json, encode_message, parts_of
from wire.value_json import Json

MOST = 65536
plain_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ids = st.none() | plain_names | st.integers(0, 2**64 - 1).map(ULong) | st.uuids() | st.binary(max_size=9)
bodies = st.one_of(
    st.lists(st.binary(max_size=30), min_size=1, max_size=1).map(
        lambda pieces: b"".join(encode(Described(ULong(0x75), piece)) for piece in pieces)
    ),
    values.map(lambda value: encode(Described(ULong(0x77), value))),
    st.lists(st.lists(values, max_size=2), min_size=1, max_size=2).map(
        lambda rows: b"".join(encode(Described(ULong(0x76), row)) for row in rows)
    ),
)


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


@st.composite
def messages(draw: Any) -> bytes:
    fields = [
        draw(ids),
        draw(st.none() | st.binary(max_size=5)),
        *(draw(st.none() | plain_names) for _ in range(3)),
        draw(ids),
        draw(st.none() | st.sampled_from([Symbol("text/plain"), Symbol("application/json")])),
        None,
        draw(st.none() | st.integers(0, 2**62).map(Timestamp)),
        draw(st.none() | st.integers(-(2**63), 2**63 - 1).map(Timestamp)),
        draw(st.none() | plain_names),
        draw(st.none() | st.integers(0, 2**32 - 1).map(UInt)),
    ]
    while fields and fields[-1] is None:
        fields.pop()
    annotations = draw(st.dictionaries(plain_names.filter(str.isascii).map(Symbol), values, max_size=2))
    properties = draw(st.dictionaries(plain_names | st.sampled_from(["$map", "$x"]), values, max_size=3))
    return b"".join(
        (
            section(0x72, annotations) if annotations else b"",
            section(0x73, fields) if fields else b"",
            section(0x74, properties) if properties else b"",
            draw(bodies),
        )
    )


def shown(encoded: bytes, most: int = MOST) -> dict[str, Json]:
    parts = parts_of(encoded)
    assert parts.why is None
    assert parts.left_out == []
    form = {
        **parts.properties,
        "properties": parts.application,
        "annotations": parts.annotations,
        "body": body_to_json(parts, most),
    }
    return json.loads(json.dumps(form, ensure_ascii=False).encode())


@given(messages())
def test_a_message_comes_back_from_its_fields(encoded: bytes) -> None:
    back = encode_message(shown(encoded))
    assert back.startswith(b"\x00\x53\x70")
    assert back.endswith(encoded)


def test_a_message_of_a_client_is_shown() -> None:
    message = proton.Message(
        id="7", subject="s", body="text", durable=True, user_id=b"alice", content_type=proton.symbol("text/plain")
    )
    message.properties = {"at": proton.timestamp(5), "n": proton.ulong(2**63)}
    parts = parts_of(bytes(message.encode()))
    assert parts.is_durable
    assert parts.properties["message_id"] == "7"
    assert parts.properties["user_id"] == "alice"
    assert parts.properties["content_type"] == "text/plain"
    assert parts.application == {
        "at": {"$timestamp": "1970-01-01T00:00:00.005Z"},
        "n": {"$ulong": "9223372036854775808"},
    }
    assert body_to_json(parts, MOST) == {
        "kind": "text",
        "section": "value",
        "text": "text",
        "bytes": 4,
        "is_cut": False,
        "why": None,
    }


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"plain", None, {"kind": "text", "text": "plain"}),
        (b'{"a": 1}', "application/json", {"kind": "json", "text": '{"a": 1}'}),
        (b"{", "application/json", {"kind": "text", "text": "{"}),
        (b"\xff\xfe", None, {"kind": "binary", "base64": "//4="}),
        (b"a\x00b", None, {"kind": "binary", "base64": "YQBi"}),
        ("a\x00\u202e<b>", None, {"kind": "text", "text": "a\x00\u202e<b>"}),
        ([1, "x"], None, {"kind": "value", "text": '[1, "x"]'}),
        (None, None, {"kind": "none", "bytes": 0}),
    ],
)
def test_a_body_is_shown_as_what_it_is(body: Any, content_type: str | None, expected: dict[str, Any]) -> None:
    parts = parts_of(encode_proton(Message(body, content_type=content_type)))
    found = body_to_json(parts, MOST)
    assert {name: found[name] for name in expected} == expected
    assert not found["is_cut"]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 40), st.booleans())
def test_a_long_text_is_cut_between_two_characters(text: str, most: int, is_data: bool) -> None:
    parts = parts_of(section(0x75, text.encode()) if is_data else section(0x77, text))
    found = body_to_json(parts, most)
    raw = text.encode()
    assert found["bytes"] == len(raw)
    assert found["is_cut"] == (len(raw) > most)
    if found["kind"] == "text":
        assert text.startswith(found["text"])
        assert len(found["text"].encode()) > min(most, len(raw)) - 4
    else:
        assert is_data


def test_a_body_of_which_only_the_first_bytes_are_at_hand_is_cut() -> None:
    encoded = section(0x75, b"x" * 100_000)
    found = body_to_json(parts_of(encoded[:70_000], len(encoded)), 10)
    assert (found["text"], found["bytes"], found["is_cut"]) == ("x" * 10, 100_000, True)


def test_text_that_is_not_utf8_says_so() -> None:
    found = body_to_json(parts_of(b"\x00\x53\x77\xa1\x02\xff\xfe"), MOST)
    assert (found["kind"], found["base64"], found["why"]) == ("binary", "//4=", "the text of the body is not UTF-8")


def test_huge_names_values_and_maps_are_cut_and_counted() -> None:
    many = {f"name{number}": number for number in range(10_000)}
    parts = parts_of(section(0x74, {"k" * 65536: "v" * 65536, **many}))
    ((key, value), *_) = parts.application["$map"]
    assert key == {"$cut": {"type": "string", "bytes": 65541, "start": "k" * 200}}
    assert value["$cut"]["bytes"] == 65541
    assert parts.left_out == ["9,745 of 10,001 application properties are not shown"]
    assert len(json.dumps(parts.application)) < 30_000


@given(messages(), st.data())
def test_bytes_that_are_no_message_say_why_or_are_shown(encoded: bytes, data: st.DataObject) -> None:
    damaged = bytearray(encoded)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    whole = data.draw(st.sampled_from([len(cut), len(cut) + 100]))
    parts = parts_of(cut, whole)
    form = (parts.properties, parts.application, parts.annotations, body_to_json(parts, MOST), body_to_json(parts, 3))
    json.dumps(form, ensure_ascii=False).encode()
    assert parts.why is None or parts.why.startswith("the message cannot be decoded: ")


@given(st.binary(max_size=60))
def test_any_bytes_say_why_or_are_shown(raw: bytes) -> None:
    parts = parts_of(raw)
    json.dumps((parts.application, body_to_json(parts, MOST)), ensure_ascii=False).encode()


def test_values_nested_without_end_are_not_decoded() -> None:
    deep = b"\x00\x53\x77" + b"\x00\x53\x01" * 5000 + b"\x40"
    found = body_to_json(parts_of(deep), MOST)
    assert found["kind"] == "value"
    assert "cannot be decoded" in found["why"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"colour": 1}, "unknown field 'colour'"),
        ({"subject": 5}, "subject: expected a string, got 5"),
        ({"durable": 1}, "durable: expected true or false"),
        ({"priority": 256}, "priority: expected 0 to 255"),
        ({"ttl_s": -1}, "ttl_s"),
        ({"message_id": 5}, "message_id: expected a string"),
        ({"content_type": "\u00e4"}, "content_type: expected a symbol"),
        ({"creation_time": "today"}, "creation_time: expected"),
        ({"properties": [1]}, "properties: expected an object"),
        ({"properties": {"a": {"$ubyte": 256}}}, "properties.a: expected a whole number in the range of ubyte"),
        ({"properties": {"a": {"$cut": {}}}}, "properties.a: this value was cut"),
        ({"body": {"kind": "text"}}, "body.text: expected a string, got None"),
        ({"body": {"kind": "text", "text": "a", "is_cut": True}}, "this body was cut"),
        ({"body": {"kind": "json", "text": "{"}}, "body.text: expected JSON"),
        ({"body": {"kind": "binary", "base64": "!"}}, "body.base64: expected Base64"),
        ({"body": {"kind": "picture"}}, "body.kind: expected text, json, binary, value or none"),
        ({"body": {"kind": "value", "text": "["}}, "body.text: expected the JSON form"),
        ({"body": "text"}, "body: expected an object"),
    ],
)
def test_fields_that_are_no_message_are_refused_with_their_place(fields: dict[str, Json], words: str) -> None:
    with pytest.raises(MessageJsonError, match="message: ") as refused:
        encode_message(fields)
    assert words in str(refused.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["message_id", "user_id", "to", "creation_time", "group_sequence", "properties", "body", "ttl_s"]
        ),
        json_values
        | st.fixed_dictionaries({"kind": st.sampled_from(["text", "json", "binary", "value"]), "text": json_values}),
    )
)
def test_any_fields_are_a_message_or_are_refused_in_a_sentence(fields: dict[str, Json]) -> None:
    try:
        encoded = encode_message(fields)
    except MessageJsonError as error:
        why = str(error)
    else:
        why = "message: " if parts_of(encoded).why is None else "encoded, and not decoded again"
    assert why.startswith("message: ")
