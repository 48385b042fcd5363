from typing import Any

import pytest

from router.routing.fields import ControlMessageError
from router.routing.messages import (
    Hello,
    Lsr,
    Lsu,
    Lsus,
    Mar,
    MauAll,
    MauChanges,
    Message,
    Ra,
    UnknownMessage,
    VersionCheck,
    VersionConfirmation,
    Versions,
    parse,
)

OR_JSON = " as an AMQP value, or its JSON in a string"
OF_NEIGHBOR = "of a neighbor router's control message"

EXAMPLES: list[Message] = [
    Hello("r1", 7, ("r2",), 4),
    Ra("r1", Versions(7, 3, 2), 12345),
    Lsr("r1", {"r2": Versions(7, 3, 2), "r3": Versions(1, 0, 0)}),
    Lsu("r1", 7, 3, {"r2": 1, "r3": 4}),
    Lsus("r1", (Lsu("r2", 7, 3, {"r1": 1}), Lsu("r3", 8, 1, {}))),
    MauChanges("r1", 7, 2, 5, ("M0orders",), ("M1orders",)),
    MauAll("r1", 7, 5, ("M0orders", "B:b1")),
    Mar("r1", "r2", 7, 2),
    VersionCheck("r1", 7, 2, ("r2", "r3"), 5),
    VersionConfirmation("r1", 7, "r2", 9, 3, 5),
]


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return type(value) in (str, int)


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_a_message_survives_the_way_through_a_map_of_plain_values(message: Message) -> None:
    body = message.to_map()
    assert body["id"] == "r1"
    assert body["pv"] == 1
    assert body["area"] == "0"
    assert _is_plain(body)
    assert parse(message.opcode, body) == message


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_unknown_keys_and_a_missing_version_do_not_matter(message: Message) -> None:
    body = {key: value for key, value in message.to_map().items() if key not in ("pv", "area")}
    assert parse(message.opcode, {**body, "hints": [3]}) == message


def test_a_dispatch_like_change_of_addresses_starts_from_the_version_before() -> None:
    body = {"id": "B", "instance": 1, "mobile_seq": 4, "hints": [1], "add": ["M0news"], "del": []}
    assert parse("MAU", body) == MauChanges("B", 1, 3, 4, ("M0news",), ())


def test_a_request_without_have_asks_for_everything() -> None:
    assert parse("LSR", {"id": "A", "pv": 1, "area": "0"}) == Lsr("A", {})


@pytest.mark.parametrize(
    ("opcode", "body", "said"),
    [
        ("HELLO", {"instance": 1}, f"HELLO: field 'id' {OF_NEIGHBOR}: expected a string, got None"),
        ("HELLO", {"id": "", "instance": 1}, f"HELLO: field 'id' {OF_NEIGHBOR}: expected a string, got ''"),
        (
            "HELLO",
            {"id": "a", "instance": True},
            f"HELLO: field 'instance' {OF_NEIGHBOR}: expected an integer of at least 0, got True",
        ),
        (
            "HELLO",
            {"id": "a", "instance": 1, "seen": "ab"},
            f"HELLO: field 'seen' {OF_NEIGHBOR}: expected a list of strings{OR_JSON}, got 'ab'",
        ),
        (
            "HELLO",
            {"id": "a", "instance": 1, "seen": [1]},
            f"HELLO: field 'seen' {OF_NEIGHBOR}: expected a list of strings, got [1]",
        ),
        (
            "HELLO",
            {"id": "a", "instance": 1, "cost": 0},
            f"HELLO: field 'cost' {OF_NEIGHBOR}: expected an integer of at least 1, got 0",
        ),
        (
            "LSR",
            {"id": "a", "have": {"b": [1, 2]}},
            f"LSR: field 'have' {OF_NEIGHBOR}: expected three integers as versions of router 'b', got [1, 2]",
        ),
        ("LSR", {"id": "a", "have": ["b"]}, f"LSR: field 'have' {OF_NEIGHBOR}: expected a map, got ['b']"),
        ("LSU", {"id": "a", "instance": 1, "ls_seq": 1}, f"LSU: field 'ls' {OF_NEIGHBOR}: expected a map, got None"),
        (
            "LSU",
            {"id": "a", "instance": 1, "ls_seq": 1, "ls": {"peers": {"b": -1}}},
            f"LSU: field 'b' {OF_NEIGHBOR}: expected an integer of at least 1, got -1",
        ),
        ("LSU", {"id": "a", "several": "{}"}, f"LSU: field 'several' {OF_NEIGHBOR}: expected a list of maps, got {{}}"),
        (
            "LSU",
            {"id": "a", "several": "["},
            f"LSU: field 'several' {OF_NEIGHBOR}: expected a list of maps{OR_JSON}, got '['",
        ),
        (
            "LSU",
            {"id": "a", "several": [{"id": "b"}]},
            f"LSU: field 'instance' {OF_NEIGHBOR}: expected an integer of at least 0, got None",
        ),
        ("LSR", {"id": "a", "have": "[]"}, f"LSR: field 'have' {OF_NEIGHBOR}: expected a map, got []"),
        (
            "MAU",
            {"id": "a", "instance": 1, "mobile_seq": 1, "exist": [], "add": []},
            "MAU: expected in a MAU either the field exist, or the fields add and del, got both",
        ),
        (
            "MAU",
            {"id": "a", "instance": 1, "mobile_seq": 1, "exist": "M0a"},
            f"MAU: field 'exist' {OF_NEIGHBOR}: expected a list of strings{OR_JSON}, got 'M0a'",
        ),
        (
            "MAU",
            {"id": "a", "instance": 1, "mobile_seq": 1, "exist": "[1]"},
            f"MAU: field 'exist' {OF_NEIGHBOR}: expected a list of strings, got [1]",
        ),
        (
            "MAU",
            {"id": "a", "instance": 1, "mobile_seq": 1, "exist": "{}"},
            f"MAU: field 'exist' {OF_NEIGHBOR}: expected a list of strings, got {{}}",
        ),
        (
            "MAU",
            {"id": "a", "instance": 1, "mobile_seq": 1, "exist": "[" * 9000},
            f"MAU: field 'exist' {OF_NEIGHBOR}: expected a list of strings{OR_JSON}, got '[[[[[[",
        ),
        (
            "MAR",
            {"id": "a", "router": "b", "instance": 1},
            f"MAR: field 'have_seq' {OF_NEIGHBOR}: expected an integer of at least 0, got None",
        ),
        ("HELLO", None, f"HELLO: expected a map as body {OF_NEIGHBOR}, got a NoneType"),
    ],
)
def test_a_malformed_message_is_refused_with_a_sentence(opcode: str, body: Any, said: str) -> None:
    with pytest.raises(ControlMessageError) as refused:
        parse(opcode, body)
    assert refused.value.description.startswith(said)
    assert refused.value.condition == "amqp:invalid-field"


@pytest.mark.parametrize(("opcode", "body"), [("HELLO", {"pv": 2}), ("XYZ", {"id": "a"})])
def test_what_a_newer_protocol_may_say_is_told_apart(opcode: str, body: dict[str, Any]) -> None:
    with pytest.raises(UnknownMessage):
        parse(opcode, body)
