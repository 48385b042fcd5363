"""Requests for changes, as strangers send them: each is read, or refused with the place and what is allowed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mesh.watch.write_operations import MAX_NUMBERS, WRITES, MemberType, WriteMember, WriteOperation
from mesh.watch.write_request import WriteRefused, WriteRequest, parse_write

HEADERS = {"content-type": "application/json", "idempotency-key": "k"}
PURGE, MOVE, LOG_LEVEL = (next(each for each in WRITES if each.name == name) for name in ("purge", "move", "log-level"))
OPERATIONS = st.sampled_from(WRITES)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


def read(operation: WriteOperation, body: bytes, query: str = "", **headers: str) -> WriteRequest:
    parameters = [tuple(each.split("=", 1)) for each in query.split("&") if each]
    return parse_write(operation, "b1/1", {**HEADERS, **headers}, parameters, body)  # type: ignore[arg-type]


def refusal_of(operation: WriteOperation, body: bytes) -> WriteRefused | None:
    try:
        read(operation, body)
    except WriteRefused as refused:
        return refused
    return None


def refusal(operation: WriteOperation, body: Any, query: str = "", **headers: str) -> WriteRefused:
    with pytest.raises(WriteRefused) as caught:
        read(operation, body if isinstance(body, bytes) else json.dumps(body).encode(), query, **headers)
    assert caught.value.status == 400
    assert caught.value.place
    assert caught.value.sentence
    return caught.value


def valid(member: WriteMember) -> st.SearchStrategy[Any]:
    numbers = st.integers(member.least, member.most)
    match member.type:
        case MemberType.NUMBER:
            return numbers
        case MemberType.NUMBERS:
            return st.lists(numbers, min_size=1, max_size=20, unique=True)
        case MemberType.FLAG:
            return st.booleans()
        case MemberType.MESSAGE:
            return st.fixed_dictionaries({"subject": st.text(max_size=5)})
    if member.values:
        return st.sampled_from(member.values)
    characters = st.characters(exclude_categories=("Cs", "Cc"))
    return st.text(characters, min_size=member.least, max_size=max(member.least, 20))


@st.composite
def valid_requests(draw: st.DrawFn) -> tuple[WriteOperation, dict[str, Any]]:
    operation = draw(OPERATIONS)
    chosen = draw(st.sampled_from(operation.one_of)) if operation.one_of else None
    found = {}
    for member in operation.members:
        if member.is_needed or member.name == chosen or (member.name not in operation.one_of and draw(st.booleans())):
            found[member.name] = draw(valid(member))
    return operation, found


@given(OPERATIONS, st.binary(max_size=200))
@example(PURGE, b"[" * 100_000)
@example(PURGE, b'{"up_to": 1' + b"0" * 5000 + b"}")
@example(PURGE, b'{"up_to": NaN}')
@example(PURGE, b'{"up_to": 1, "up_to": 2}')
@example(PURGE, b'\xff{"up_to": 1}')
@example(LOG_LEVEL, b'{"module": "\\ud800", "level": "info"}')
def test_any_bytes_are_read_or_refused_with_the_place(operation: WriteOperation, body: bytes) -> None:
    refused = refusal_of(operation, body)
    if refused is not None:
        assert (refused.status, bool(refused.place)) == (400, True)
        json.dumps(refused.to_map()).encode()


@given(OPERATIONS, st.dictionaries(st.sampled_from([m.name for o in WRITES for m in o.members]) | st.text(), VALUES))
def test_any_object_is_read_or_refused_with_the_place(operation: WriteOperation, body: dict[str, Any]) -> None:
    refused = refusal_of(operation, json.dumps(body).encode())
    assert refused is None or (refused.status, bool(refused.place)) == (400, True)


@given(valid_requests(), st.booleans())
def test_a_valid_request_is_read_as_it_is(drawn: tuple[WriteOperation, dict[str, Any]], is_dry_run: bool) -> None:
    operation, body = drawn
    found = read(operation, json.dumps(body).encode(), f"dry_run={str(is_dry_run).lower()}")
    assert (found.is_dry_run, found.key, set(found.arguments)) == (is_dry_run, "k", set(body))
    for name, value in body.items():
        given_ = found.arguments[name]
        assert (list(given_) if isinstance(given_, tuple) else given_) == value or name == "message"


@given(valid_requests(), st.data())
def test_a_request_without_a_needed_member_or_with_another_one_is_refused(
    drawn: tuple[WriteOperation, dict[str, Any]], data: st.DataObject
) -> None:
    operation, body = drawn
    assert refusal(operation, body | {"other": 1}).place == "other"
    needed = [member.name for member in operation.members if member.is_needed]
    if needed:
        missing = data.draw(st.sampled_from(needed))
        assert refusal(operation, {name: value for name, value in body.items() if name != missing}).place == missing


@given(valid_requests())
def test_the_digest_is_that_of_the_request_and_of_nothing_else(drawn: tuple[WriteOperation, dict[str, Any]]) -> None:
    operation, body = drawn
    one, reordered = json.dumps(body).encode(), json.dumps(dict(reversed(body.items())), indent=1).encode()
    first = read(operation, one)
    assert read(operation, reordered, **{"idempotency-key": "other"}).digest == first.digest
    assert parse_write(operation, "b1/2", HEADERS, [], one).digest != first.digest
    with_more = json.dumps(body | {"expect": {"id": "b1/1"}}).encode()
    assert read(operation, with_more).digest != first.digest


@pytest.mark.parametrize(
    ("content_type", "is_allowed"),
    [
        ("application/json", True), ("application/json; charset=utf-8", True),
        ('Application/JSON;charset="UTF-8"', True),
        ("text/plain", False), ("application/x-www-form-urlencoded", False), ("", False),
        ("application/json; charset=latin-1", False), ("text/plain; application/json", False),
    ],
)  # fmt: skip
def test_only_json_is_read_since_a_form_of_another_site_cannot_send_it(content_type: str, is_allowed: bool) -> None:
    if is_allowed:
        assert read(PURGE, b'{"up_to": 1}', **{"content-type": content_type}).arguments == {"up_to": 1}
    else:
        found = refusal(PURGE, {"up_to": 1}, **{"content-type": content_type})
        assert (found.place, found.allowed) == ("Content-Type", ("application/json",))


@pytest.mark.parametrize("key", ["", "x" * 129, "a b", "é", "a\x7f", "\t"])
def test_a_key_is_short_and_visible(key: str) -> None:
    assert refusal(PURGE, {"up_to": 1}, **{"idempotency-key": key}).place == "Idempotency-Key"


def test_a_dry_run_needs_no_key_and_a_change_needs_one() -> None:
    without = {"content-type": "application/json"}
    assert parse_write(PURGE, "b1/1", without, [("dry_run", "true")], b'{"up_to": 1}').key is None
    with pytest.raises(WriteRefused, match="Idempotency-Key"):
        parse_write(PURGE, "b1/1", without, [], b'{"up_to": 1}')


@pytest.mark.parametrize("query", ["dry_run=1", "dry_run=", "dry_run=true&dry_run=true", "dryrun=true"])
def test_a_dry_run_is_never_taken_for_a_change(query: str) -> None:
    assert refusal(PURGE, {"up_to": 1}, query).place in ("dry_run", "dryrun")


@pytest.mark.parametrize(
    ("operation", "body", "place"),
    [
        (PURGE, {"up_to": True}, "up_to"),
        (PURGE, {"up_to": 1.0}, "up_to"),
        (PURGE, {"up_to": "1"}, "up_to"),
        (PURGE, {"up_to": -1}, "up_to"),
        (PURGE, {"up_to": 2**63}, "up_to"),
        (PURGE, {"up_to": 1, "expect": {"adress": "a"}}, "expect"),
        (PURGE, {"up_to": 1, "expect": []}, "expect"),
        (PURGE, {"up_to": 1, "expect": {"address": ["a"]}}, "expect.address"),
        (MOVE, {"target": "a"}, "numbers"),
        (MOVE, {"target": "a", "count": 1, "up_to": 1}, "numbers"),
        (MOVE, {"target": "", "count": 1}, "target"),
        (MOVE, {"target": "a\nb", "count": 1}, "target"),
        (MOVE, {"target": "a", "numbers": []}, "numbers"),
        (MOVE, {"target": "a", "numbers": [1, 1]}, "numbers"),
        (MOVE, {"target": "a", "numbers": list(range(MAX_NUMBERS + 1))}, "numbers"),
        (LOG_LEVEL, {"module": "", "level": "loud"}, "level"),
    ],
)
def test_a_wrong_member_is_named(operation: WriteOperation, body: dict[str, Any], place: str) -> None:
    assert refusal(operation, body).place == place
