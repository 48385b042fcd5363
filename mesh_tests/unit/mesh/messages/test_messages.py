"""How messages are read from the command line and shown on it."""

import json
from datetime import UTC, datetime

import click
import pytest

from mesh.messages.sender import Tally, parse_property
from mesh.terminal.message_format import ReceivedMessage, check_format, format_message, message_map
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, rejected
from wire.message import MalformedMessage, Message, decode, encode

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)


def shown(**fields: object) -> ReceivedMessage:
    return ReceivedMessage(Message(**fields), "orders", 7, AT)  # type: ignore[arg-type]


def test_a_message_survives_encoding() -> None:
    message = Message(
        body="hi",
        to="a",
        subject="s",
        message_id="m-1",
        correlation_id=7,
        reply_to="r",
        content_type="text/plain",
        group_id="g",
        durable=True,
        priority=9,
        ttl_s=2.5,
        properties={"n": 1, "t": True, "s": "x"},
        annotations={"x-opt": 3},
        delivery_annotations={"x-opt-to": "dev/a"},
    )
    assert decode(encode(message)) == message


def test_bytes_are_a_data_section_and_text_an_amqp_value() -> None:
    assert b"\x00Su" in encode(Message(b"\x00\x01"))
    assert b"\x00Sw" in encode(Message("text"))
    assert decode(encode(Message(b"\x00\x01"))).body == b"\x00\x01"


def test_bytes_that_are_no_message_are_refused() -> None:
    with pytest.raises(MalformedMessage, match="the 7 bytes are not an AMQP message"):
        decode(b"garbage")


def test_a_format_names_parts_of_the_message() -> None:
    told = shown(body="hi", subject="s", group_id="k", message_id=3, content_type="c", properties={"a": 1})
    line = format_message(r"%n %t %a %k %b %s %i %p %c %d 100%%\n", told)
    assert line == '7 2026-01-02T03:04:05.678+00:00 orders k hi s 3 {"a": 1} c 0 100%\n'


def test_what_a_message_lacks_is_shown_as_nothing() -> None:
    assert format_message("[%b%k%s%i%c]", shown()) == "[]"
    assert format_message(r"%b\t%b\q", shown(body={"a": [1, b"x"]})) == '{"a": [1, "eA=="]}\t{"a": [1, "eA=="]}' + r"\q"


def test_json_has_delivery_annotations_where_there_are_any() -> None:
    assert message_map(shown(delivery_annotations={"x-opt-to": "dev/a"}))["delivery_annotations"] == {
        "x-opt-to": "dev/a"
    }
    assert "delivery_annotations" not in message_map(shown())


def test_an_unknown_format_code_is_refused() -> None:
    assert check_format(r"%b\n") == r"%b\n"
    with pytest.raises(ValueError, match="unknown format code %z: expected one of %t %a"):
        check_format("%z")


def test_json_has_text_as_text_and_other_bytes_in_base64() -> None:
    assert message_map(shown(body=b"text"))["body"] == "text"
    assert message_map(shown(body=b"\xff"))["body_base64"] == "/w=="
    assert message_map(shown(body=[1, "a"]))["body"] == [1, "a"]
    assert json.dumps(message_map(shown(body=None, properties={"b": b"\xff"})))


@pytest.mark.parametrize(
    ("text", "expected"), [("a=b", ("a", "b")), ("a=", ("a", "")), ("a=b=c", ("a", "b=c")), ("a:=1", ("a", 1))]
)
def test_a_property_is_text_unless_it_is_said_to_be_json(text: str, expected: tuple[str, object]) -> None:
    assert parse_property(text) == expected


@pytest.mark.parametrize("text", ["a", "=b", "a:=x", "a:=[1]", ":=1"])
def test_a_malformed_property_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse_property(text)


def test_outcomes_are_summed_up_in_one_line() -> None:
    tally = Tally(sent=6)
    for outcome in (ACCEPTED, ACCEPTED, RELEASED, RELEASED, rejected("amqp:not-allowed", "too big")):
        tally.count(outcome)
    assert tally.line(is_presettled=False) == (
        "sent 6  accepted 2  released 2  rejected 1  unknown 1  (nobody took it: 2, too big: 1)"
    )
    tally.count(MODIFIED_FAILED)
    assert tally.unknown == 0
    assert tally.differs_from("accepted", is_presettled=False)
    assert not tally.differs_from("accepted", is_presettled=True)
