"""Requests and answers of AMQP management: every AMQP value is read or refused with a sentence."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import proton
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.watch.management.protocol import (
    MAX_ROWS,
    ManagementError,
    ManagementRequest,
    Status,
    audited,
    encode_answer,
    encode_error,
    encode_rows,
    parse,
)
from wire.codec.values import (
    Array,
    Byte,
    Char,
    Described,
    Int,
    Pairs,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    encode,
)

SCALARS = st.one_of(
    st.none(), st.booleans(), st.text(), st.binary(), st.uuids(), st.floats(), st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(ULong), st.integers(0, 2**32 - 1).map(UInt), st.integers(0, 255).map(UByte),
    st.integers(0, 65535).map(UShort), st.integers(-(2**31), 2**31 - 1).map(Int), st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short), st.integers(0, 2**40).map(Timestamp),
    st.text(st.characters(max_codepoint=127), max_size=20).map(Symbol),
    st.characters(exclude_categories=["Cs"]).map(Char),
)  # fmt: skip
KEYS = st.one_of(st.text(), st.integers(-(2**63), 2**63 - 1), st.booleans(), st.none(), st.binary())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(st.tuples(KEYS, inner), max_size=4).map(lambda items: Pairs(tuple(items))),
        st.builds(Described, st.integers(0, 2**64 - 1).map(ULong), inner),
        st.just(Array(0x53, (ULong(1), ULong(2)))),
    ),
    max_leaves=6,
)
NAMES = ("operation", "type", "name", "identity", "entityType", "offset", "count", "limit")
MOST_CHARS = 300


def error_of(read: Callable[[], object]) -> ManagementError | None:
    try:
        read()
    except ManagementError as error:
        return error
    return None


def read_all(message: bytes) -> ManagementRequest | None:
    """Read every part of a request; each is a value, or an error with a sentence."""
    try:
        request = parse(message)
    except ManagementError:
        return None
    reads: list[Callable[[], object]] = [lambda: request.operation, request.attribute_names, request.page]
    reads += [partial(read, name) for name in NAMES for read in (request.text, request.number)]
    for error in filter(None, map(error_of, reads)):
        assert error.status is Status.BAD_REQUEST
        assert len(str(error)) < MOST_CHARS
    assert proton_reads(encode_answer(request, Status.OK, "OK", encode({}))).properties["statusCode"] == Status.OK
    return request


def proton_reads(data: bytes) -> Any:
    message = proton.Message()
    message.decode(data)
    return message


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_an_error(data: bytes) -> None:
    read_all(data)


@given(st.lists(st.tuples(st.integers(0x6F, 0x7A), VALUES), max_size=5))
def test_any_sections_of_any_values_are_a_request_or_an_error(sections: list[tuple[int, Any]]) -> None:
    read_all(b"".join(section(code, value) for code, value in sections))


@given(st.dictionaries(st.sampled_from(NAMES), VALUES), VALUES, VALUES, VALUES)
def test_properties_and_body_of_any_type_are_read_or_refused(
    properties: dict[str, Any], body: Any, reply_to: Any, correlation_id: Any
) -> None:
    fields = [None, None, None, None, reply_to, correlation_id]
    request = read_all(section(0x73, fields) + section(0x74, properties) + section(0x77, body))
    # A value with two descriptors is malformed to the codec, which has the whole request refused.
    assert request is None or request.reply_to == (reply_to if isinstance(reply_to, str) else None)


@given(st.binary(max_size=300), st.data())
def test_a_valid_request_with_wrong_bytes_in_it_is_a_request_or_an_error(noise: bytes, data: st.DataObject) -> None:
    message = bytearray(
        section(0x73, [None, None, None, None, "amqp:/_topo/0/r1/temp.x", ULong(1)])
        + section(0x74, {"operation": "QUERY", "entityType": "x", "offset": 0, "count": 10})
        + section(0x77, {"attributeNames": ["a", "b"]})
    )
    for byte in noise[:5]:
        message[data.draw(st.integers(0, len(message) - 1))] = byte
    read_all(bytes(message))


@pytest.mark.parametrize(
    ("encoded", "value"),
    [(ULong(7), 7), (ULong(2**63), 2**63), ("seven", "seven"), (b"\x00\xff", b"\x00\xff"),
     (uuid.UUID(int=7), uuid.UUID(int=7)), (None, None)],
)  # fmt: skip
def test_the_answer_has_the_correlation_id_with_its_type(encoded: Any, value: Any) -> None:
    request = parse(section(0x73, [None, None, None, None, "x", encoded]))
    answer = encode_answer(request, Status.OK, "OK", encode({}))
    assert section(0x73, [None, None, "x", None, None, encoded]) in answer
    found = proton_reads(answer)
    assert found.correlation_id == value
    assert (found.address, dict(found.properties)) == ("x", {"statusCode": 200, "statusDescription": "OK"})


def test_a_message_id_takes_the_place_of_a_missing_correlation_id() -> None:
    assert parse(section(0x73, [ULong(5), None, None, None, "x"])).correlation_id == 5
    assert parse(section(0x73, [ULong(5), None, None, None, "x", "six"])).correlation_id == "six"


@pytest.mark.parametrize("descriptor", [ULong(0x74), Symbol("amqp:application-properties:map")])
def test_a_section_may_have_either_descriptor(descriptor: Any) -> None:
    assert parse(encode(Described(descriptor, {"operation": "read"}))).operation == "READ"


@pytest.mark.parametrize("code", [0x73, 0x74, 0x77])
def test_a_section_may_not_come_twice(code: int) -> None:
    # A router reads the first properties: with others behind them, it would check another reply-to than is used.
    values = {0x73: [None] * 4 + ["first"], 0x74: {"operation": "QUERY"}, 0x77: {}}
    message = b"".join(section(each, value) for each, value in values.items())
    assert read_all(message) is not None
    error = error_of(partial(parse, message + section(code, values[code])))
    assert error is not None
    assert str(error) == f"the request has its section 0x{code:02x} twice"


def test_what_proton_sends_is_read() -> None:
    sent = proton.Message({"attributeNames": ["a"]}, reply_to="x", correlation_id=3, durable=True)
    sent.properties = {"operation": "QUERY", "offset": 2, "count": proton.uint(4)}
    sent.annotations, sent.instructions = {proton.symbol("a"): 1}, {proton.symbol("b"): 2}
    request = parse(bytes(sent.encode()))
    assert (request.operation, request.page(), request.attribute_names()) == ("QUERY", (2, 4), ("a",))


@pytest.mark.parametrize(
    ("properties", "body", "expected"),
    [
        ({}, {}, "no application property 'operation'"),
        ({"operation": 5}, {}, "operation: expected a string, got 5"),
        ({"operation": "QUERY", "offset": -1}, {}, "offset: expected a whole number of 0 or more, got -1"),
        ({"operation": "QUERY", "count": "3"}, {}, "count: expected a whole number of 0 or more, got '3'"),
        ({"operation": "QUERY", "count": True}, {}, "count: expected a whole number of 0 or more, got True"),
        ({"operation": "QUERY", "count": MAX_ROWS + 1}, {}, "count: expected at most 5,000, got 5,001"),
        ({"operation": "QUERY"}, {"attributeNames": "a"}, "attributeNames: expected a list of strings, got 'a'"),
        ({"operation": "QUERY"}, {"attributeNames": [1]}, "attributeNames: expected a list of strings, got"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(properties: dict[str, Any], body: Any, expected: str) -> None:
    request = parse(section(0x74, properties) + section(0x77, body))
    with pytest.raises(ManagementError) as refused:
        _ = (request.operation, request.page(), request.attribute_names())
    assert (refused.value.status, expected in str(refused.value)) == (Status.BAD_REQUEST, True)


@given(st.lists(st.text(), max_size=4), st.lists(st.lists(SCALARS, max_size=3), max_size=300))
def test_rows_are_encoded_as_one_map(names: list[str], rows: list[list[Any]]) -> None:
    body = encode_rows(tuple(names), [encode(row) for row in rows])
    as_whole = proton_reads(encode_answer(ManagementRequest(), Status.OK, "OK", body, len(rows)))
    assert as_whole.properties["count"] == len(rows)
    assert list(as_whole.body["attributeNames"]) == names
    assert len(as_whole.body["results"]) == len(rows)


def test_an_error_is_an_answer_with_an_empty_map() -> None:
    found = proton_reads(encode_error(ManagementRequest("x", "c"), ManagementError(Status.NOT_FOUND, "no such thing")))
    assert (found.body, found.correlation_id) == ({}, "c")
    assert dict(found.properties) == {"statusCode": 404, "statusDescription": "no such thing"}


def test_keys_of_a_body_that_are_not_texts_are_known_and_are_no_attributes() -> None:
    properties = encode(Described(ULong(0x74), {"operation": "UPDATE"}))
    body = encode(Described(ULong(0x77), Pairs([(7, "x"), ("cost", 9), (b"b", 1)])))
    found = parse(properties + body)
    assert (found.body, found.odd_keys) == ({"cost": 9}, ("7", "b'b'"))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("info", "info"),
        (5, 5),
        (True, True),
        (None, None),
        (b"\xff", "b'\\xff'"),
        (float("nan"), "nan"),
        ([b"x"], "[b'x']"),
    ],
)
def test_every_value_of_a_request_can_be_written_into_the_audit(value: Any, told: Any) -> None:
    assert json.loads(json.dumps(audited(value), allow_nan=False)) == told
