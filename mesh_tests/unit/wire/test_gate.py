"""Does what a peer does wrong end its connection with an error that names it, and never reach the engine?"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mesh_tests.unit.wire.codec.strategies import symbols as symbols_
from mesh_tests.unit.wire.codec.strategies import values
from mesh_tests.unit.wire.pipes import Pipe
from wire.codec.frames import AmqpFrame, CompositeValue, decode_frame, encode_frame
from wire.codec.table import ATTACH, BEGIN, BY_CODE, CLOSE, OPEN, FieldType
from wire.codec.values import Described, Symbol, UInt, ULong, encode, symbols
from wire.endpoint import Endpoint, EndpointSettings
from wire.events import Closed, LinkAttached, LinkDetached, Opened
from wire.terminus import source, target

HEADER = b"AMQP\x00\x01\x00\x00"
ARRAY = b"\xe0\x06\x02\xa3\x01a\x01b"
"""Two symbols."""
MALFORMED = {
    "one byte too small": b"\xe0\x05\x02\xa3\x01a\x01b",
    "one byte too large": b"\xe0\x07\x02\xa3\x01a\x01b",
    "two bytes too large": b"\xe0\x08\x02\xa3\x01a\x01b",
    "one element too many": b"\xe0\x06\x03\xa3\x01a\x01b",
    "one element too few": b"\xe0\x06\x01\xa3\x01a\x01b",
    "array32 too small": b"\xf0\x00\x00\x00\x08\x00\x00\x00\x02\xa3\x01a\x01b",
    "array32 too large": b"\xf0\x00\x00\x00\x0a\x00\x00\x00\x02\xa3\x01a\x01b",
    "four billion nulls": b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40",
    "nested": b"\xe0\x0a\x01\xe0\x05\x02\xa3\x01a\x01b\x40",
    "nested, too small within": b"\xe0\x09\x01\xe0\x05\x02\xa3\x01a\x01b",
    "described": b"\xe0\x08\x02\x00\x53\x01\xa3\x01a\x01b",
    "no constructor": b"\xe0\x01\x00",
    "wrong constructor": b"\xe0\x02\x00\x57",
    "not ASCII": b"\xa3\x01\xff",
    "cut": b"\xa3\x09a",
}


def described(code: int, fields: list[bytes]) -> bytes:
    body = b"".join(fields)
    return b"\x00\x53" + bytes([code]) + b"\xd0" + (len(body) + 4).to_bytes(4) + len(fields).to_bytes(4) + body


def raw_frame(code: int, fields: list[bytes], channel: int = 0) -> bytes:
    body = described(code, fields)
    return (len(body) + 8).to_bytes(4) + b"\x02\x00" + channel.to_bytes(2) + body


def said(code: int, **fields: object) -> bytes:
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    channel = int(named.pop("channel", 0))  # type: ignore[call-overload]
    return encode_frame(AmqpFrame(channel, CompositeValue(BY_CODE[code], named)))


OPENING = said(0x10, container_id="x")
BEGINNING = said(0x11, next_outgoing_id=0, incoming_window=100, outgoing_window=100)
TERMINUS = [encode("a"), b"\x40", b"\x40", b"\x40", b"\x40"]


def attach(handle: int = 0, name: str = "link", role: bool = False, **fields: object) -> bytes:
    more = {} if role else {"initial_delivery_count": 0}
    return said(0x12, name=name, handle=handle, role=role, **more, **fields)


class Stranger:
    """What an endpoint makes of frames."""

    def __init__(self, *frames: bytes, pieces: int = 0) -> None:
        self.endpoint = Endpoint(EndpointSettings("server"))
        self.events: list[object] = []
        sent = HEADER + b"".join(frames)
        for at in range(0, len(sent), pieces or len(sent)):
            self.say(sent[at : at + (pieces or len(sent))])

    def say(self, *frames: bytes) -> None:
        self.endpoint.receive(b"".join(frames))
        for event in self.endpoint.drain(self):
            self.events.append(event)
            if isinstance(event, Opened):
                self.endpoint.open()
            elif isinstance(event, LinkAttached):
                event.link.accept_as_proposed()
            elif isinstance(event, LinkDetached):
                event.link.detach()

    def answers(self) -> list[CompositeValue]:
        out = b""
        while part := self.endpoint.output():
            out += part
        out, frames = out.removeprefix(HEADER), []
        while out:
            size = int.from_bytes(out[:4])
            frame = decode_frame(out[:size])
            frames += [frame.performative] if frame.performative is not None else []
            out = out[size:]
        return frames

    def error(self) -> tuple[str, str] | None:
        """Condition and description of the close, which comes behind an open and ends it all."""
        answers = self.answers()
        if not answers or answers[-1].type is not CLOSE:
            return None
        assert answers[0].type is OPEN
        assert self.endpoint.is_finished
        (closed,) = [event for event in self.events if isinstance(event, Closed)]
        error = answers[-1]["error"]
        assert (closed.error.condition, closed.error.description) == (error["condition"], error["description"])
        return error["condition"], error["description"]

    def on_delivery(self, link, delivery):
        pass

    def on_disposition(self, link, delivery):
        pass

    def on_flow(self, link):
        pass


def put(fields: list[bytes], place: int, value: bytes) -> list[bytes]:
    filled = [*fields, *[b"\x40"] * (place + 1 - len(fields))]
    filled[place] = value
    return filled


@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.parametrize("terminus", ["source", "target"])
def test_a_malformed_field_of_a_terminus_is_a_decode_error_that_names_it(terminus, kind):
    code = 0x28 if terminus == "source" else 0x29
    rules = BY_CODE[code].fields
    for place in range(len(rules)):
        own = described(code, put(TERMINUS, place, MALFORMED[kind]))
        other = described(0x51 - code, TERMINUS)
        ends = [own, other] if terminus == "source" else [other, own]
        fields = [encode("link"), b"\x43", b"\x42", b"\x40", b"\x40", *ends, b"\x40", b"\x40", b"\x43"]
        stranger = Stranger(OPENING, BEGINNING, raw_frame(0x12, fields))
        condition, description = stranger.error()
        assert condition == "amqp:decode-error"
        assert description.startswith(f"attach.{terminus}.{rules[place].name}: ")


@pytest.mark.parametrize("code", range(0x10, 0x19))
@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_field_of_a_performative_is_a_decode_error_that_names_it(code, kind):
    rules = BY_CODE[code].fields
    fields = [_plain(rule.type) if rule.is_mandatory else b"\x40" for rule in rules]
    before = [] if code == 0x10 else [OPENING]
    for place, rule in enumerate(rules):
        stranger = Stranger(*before, raw_frame(code, put(fields, place, MALFORMED[kind])))
        condition, description = stranger.error()
        assert condition == "amqp:decode-error"
        assert description.startswith(f"{BY_CODE[code].name}.{rule.name}: ")


def _plain(kind: int) -> bytes:
    return {FieldType.BOOLEAN: b"\x42", FieldType.UINT: b"\x43", FieldType.STRING: encode("x")}[FieldType(kind)]


@pytest.mark.parametrize("code", range(0x10, 0x19))
def test_a_mandatory_field_that_is_missing_or_null_is_an_invalid_field(code):
    rules = BY_CODE[code].fields
    fields = [_plain(rule.type) if rule.is_mandatory else b"\x40" for rule in rules]
    before = [] if code == 0x10 else [OPENING]
    for place, rule in enumerate(rules):
        if not rule.is_mandatory:
            continue
        for wrong in (fields[:place], put(fields, place, b"\x40")):
            condition, description = Stranger(*before, raw_frame(code, wrong)).error()
            assert condition == "amqp:invalid-field"
            assert description.startswith(f"{BY_CODE[code].name}.{rule.name}: ")


@pytest.mark.parametrize("code", range(0x10, 0x19))
def test_too_many_fields_are_a_decode_error(code):
    rules = BY_CODE[code].fields
    fields = [_plain(rule.type) if rule.is_mandatory else b"\x40" for rule in rules]
    condition, description = Stranger(*([] if code == 0x10 else [OPENING]), raw_frame(code, [*fields, b"\x40"])).error()
    assert condition == "amqp:decode-error"
    assert f"{len(rules) + 1} fields, expected at most {len(rules)}" in description


@pytest.mark.parametrize(
    ("frame", "condition", "sentence"),
    [
        (b"\x00\x00\x00\x03\x02\x00\x00\x00", "amqp:connection:framing-error", "a frame of 3 bytes"),
        (b"\x7f\x00\x00\x00\x02\x00\x00\x00", "amqp:connection:framing-error", "expected 16384 at most"),
        (b"\x00\x00\x00\x08\x01\x00\x00\x00", "amqp:connection:framing-error", "data offset 4, expected 8 to 8"),
        (b"\x00\x00\x00\x08\x03\x00\x00\x00", "amqp:connection:framing-error", "data offset 12, expected 8 to 8"),
        (b"\x00\x00\x00\x0c\x02\x01\x00\x00\x00\x53\x41\x45", "amqp:connection:framing-error", "type 1"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x1d\x45", "amqp:invalid-field", "error.condition"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x24\x45", "amqp:decode-error", "not a performative"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x99\x45", "amqp:decode-error", "0x99"),
        (b"\x00\x00\x00\x0a\x02\x00\x00\x00\x00\x53", "amqp:decode-error", "too early"),
        (b"\x00\x00\x00\x09\x02\x00\x00\x00\x45", "amqp:decode-error", "described list"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x17\x40", "amqp:decode-error", "expected a list"),
        (OPENING, "amqp:illegal-state", "second open"),
        (BEGINNING + BEGINNING, "amqp:illegal-state", "channel 0 is in use"),
        (BEGINNING + attach() + attach(name="other"), "amqp:session:handle-in-use", "0 is in use"),
        (BEGINNING + attach(name="a\0b"), "amqp:invalid-field", "attach.name: the name contains a zero byte"),
        (
            BEGINNING + said(0x12, name="x", handle=0, role=False),
            "amqp:invalid-field",
            "attach.initial-delivery-count",
        ),
        (BEGINNING + said(0x15, role=True, first=5, last=3), "amqp:invalid-field", "3 is before the first, 5"),
        (
            BEGINNING + attach() + raw_frame(0x14, [b"\x43", b"\x43", b"\xa0\x21" + bytes(33)]),
            "amqp:invalid-field",
            "transfer.delivery-tag: 33 bytes, expected at most 32",
        ),
        (
            BEGINNING + attach() + said(0x14, handle=0, delivery_tag=b"t"),
            "amqp:invalid-field",
            "transfer.delivery-id",
        ),
        (
            BEGINNING + attach(role=True) + said(0x14, handle=0, delivery_id=0, delivery_tag=b"t"),
            "amqp:not-allowed",
            "is a link where the peer receives",
        ),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_of_the_connection_closes_it(frame, condition, sentence):
    error = Stranger(OPENING, frame).error()
    assert error is not None
    assert error[0] == condition
    assert sentence in error[1]


def test_a_fault_before_the_open_is_told_behind_an_open_of_ours():
    condition, description = Stranger(BEGINNING).error()
    assert (condition, description) == ("amqp:connection:framing-error", "a begin came before the open")


@pytest.mark.parametrize("pieces", [1, 2, 3, 7, 8, 9, 100])
def test_frames_may_come_in_pieces_of_any_size(pieces):
    target_ = CompositeValue(BY_CODE[0x29], {"address": "a"})
    frames = (OPENING, BEGINNING, attach(target=target_, properties={Symbol("key"): [UInt(1), symbols(["a", "b"])]}))
    stranger = Stranger(*frames, pieces=pieces)
    assert [answer.type for answer in stranger.answers()] == [OPEN, BEGIN, ATTACH]
    assert stranger.error() is None
    assert not stranger.endpoint.gate.is_in_frame
    stranger.say(OPENING[:-1])
    assert stranger.endpoint.gate.is_in_frame


@pytest.mark.parametrize("pieces", [1, 7, 100])
@pytest.mark.parametrize(
    "empty", [b"\0\0\0\x08\2\0\0\0", b"\0\0\0\x0c\3\0\0\0more"], ids=["bare", "with a longer header"]
)
def test_an_empty_frame_is_a_sign_of_life(empty, pieces):
    stranger = Stranger(OPENING, empty, BEGINNING, empty, pieces=pieces)
    assert [answer.type for answer in stranger.answers()] == [OPEN, BEGIN]
    assert stranger.error() is None


def test_a_fault_behind_good_frames_leaves_these_as_they_are():
    stranger = Stranger(OPENING, BEGINNING, attach(), raw_frame(0x17, [MALFORMED["cut"]]), attach(1, "late"))
    assert [event.link.name for event in stranger.events if isinstance(event, LinkAttached)] == ["link"]
    assert stranger.error()[0] == "amqp:decode-error"


def test_what_comes_behind_a_fault_is_not_read():
    stranger = Stranger(OPENING, raw_frame(0x17, [MALFORMED["cut"]]))
    assert stranger.error() is not None
    stranger.say(BEGINNING, b"\xff" * 1000)
    assert stranger.answers() == []
    assert len([event for event in stranger.events if isinstance(event, Closed)]) == 1


# 2.6.1
@pytest.mark.parametrize("role", [False, True], ids=["sender", "receiver"])
@pytest.mark.parametrize("channel", [0, 1], ids=["same session", "other session"])
def test_a_link_that_is_attached_again_is_stolen(role, channel):
    second = said(0x11, channel=1, next_outgoing_id=0, incoming_window=100, outgoing_window=100)
    again = {"initial_delivery_count": 0} if not role else {}
    steal = said(0x12, channel=channel, name="link", handle=7, role=role, **again)
    stranger = Stranger(OPENING, BEGINNING, second, attach(role=role))
    stranger.say(steal)
    old, new = (event.link for event in stranger.events if isinstance(event, LinkAttached))
    (detached,) = (event for event in stranger.events if isinstance(event, LinkDetached))
    assert detached.link is old
    assert not detached.closed
    assert new.is_open
    assert not old.is_open
    (answer,) = [each for each in stranger.answers() if each.type.name == "detach"]
    assert answer["error"]["condition"] == "amqp:link:stolen"
    stranger.say(said(0x16, handle=0, closed=False))
    assert stranger.error() is None
    assert new.is_open
    stranger.say(attach(0, "another"))
    assert stranger.error() is None


def test_two_links_of_one_name_in_a_session_are_one_that_was_stolen():
    pipe = Pipe()
    session = pipe.a.begin()
    for _ in range(2):
        link = session.sender("same")
        link.set_source(source("here"))
        link.set_target(target("there"))
        link.open()
    pipe.run()
    assert pipe.a.is_open
    assert len(pipe.take(pipe.b, LinkAttached)) == 2


# What is passed on
names = st.dictionaries(symbols_, values, max_size=2)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(names, names, names, names, st.lists(symbols_, max_size=3), st.lists(symbols_, max_size=3))
def test_what_a_peer_says_of_a_link_is_passed_on_as_it_came(filters, node, more, told, capabilities, outcomes):
    ends = {"address": "a", "dynamic-node-properties": node, "capabilities": symbols(capabilities)}
    source_ = CompositeValue(BY_CODE[0x28], ends | {"filter": filters, "outcomes": symbols(outcomes)})
    target_ = CompositeValue(BY_CODE[0x29], ends | {"dynamic-node-properties": more})
    stranger = Stranger(OPENING, BEGINNING, attach(source=source_, target=target_, properties=told))
    (link,) = (event.link for event in stranger.events if isinstance(event, LinkAttached))
    assert set(link.remote_source.capabilities) == set(map(str, capabilities))
    assert {*link.remote_source.filter} == {*map(str, filters)}
    next_one = Stranger(OPENING, BEGINNING)
    passed = next_one.endpoint.begin().sender("on")
    passed.copy_source(link)
    passed.copy_target(link)
    passed.open()
    said_on = next(each for each in next_one.answers() if each.type is ATTACH)
    assert said_on["source"]["filter"] == filters
    assert said_on["source"]["dynamic-node-properties"] == node
    assert said_on["target"]["dynamic-node-properties"] == more


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(names)
def test_what_a_peer_says_of_an_error_can_be_read(info):
    wrong = CompositeValue(BY_CODE[0x1D], {"condition": "x:y", "description": "why", "info": info})
    stranger = Stranger(OPENING, said(0x18, error=wrong))
    (closed,) = (event for event in stranger.events if isinstance(event, Closed))
    assert (closed.error.condition, closed.error.description) == ("x:y", "why")
    assert {*(closed.error.info or {})} == {*map(str, info)}


# 2.7.4
def flow(**fields: object) -> bytes:
    windows = {"next_incoming_id": 0, "incoming_window": 9, "next_outgoing_id": 0, "outgoing_window": 9}
    return said(0x13, **windows, **fields)


@pytest.mark.parametrize("role", [False, True], ids=["sender", "receiver"])
def test_an_echo_is_answered_with_what_there_is_to_say_of_the_link(role):
    stranger = Stranger(OPENING, BEGINNING, attach(4, role=role))
    (link,) = (event.link for event in stranger.events if isinstance(event, LinkAttached))
    if not role:
        link.grant(5)
    stranger.answers()
    stranger.say(flow(handle=4, delivery_count=0, echo=True, **({"link_credit": 3} if role else {})))
    (answer,) = stranger.answers()
    assert (answer.type.name, answer["handle"], answer["delivery-count"]) == ("flow", 0, 0)
    assert answer["link-credit"] == (3 if role else 5)
    assert answer["next-incoming-id"] == 0
    assert answer["incoming-window"] == 256
    assert not answer["echo"]
    assert stranger.answers() == []


def test_an_echo_counts_the_deliveries_that_came():
    stranger = Stranger(OPENING, BEGINNING, attach(0))
    (link,) = (event.link for event in stranger.events if isinstance(event, LinkAttached))
    link.grant(5)
    stranger.answers()
    transfers = [said(0x14, handle=0, delivery_id=at, delivery_tag=b"t", settled=True) + b"" for at in range(2)]
    long_transfer = encode_frame(
        AmqpFrame(0, CompositeValue(BY_CODE[0x14], {"handle": 0, "delivery-id": 2, "delivery-tag": b"t"}), bytes(500))
    )
    stranger.say(*transfers, long_transfer, flow(handle=0, delivery_count=3, echo=True))
    answer = stranger.answers()[-1]
    assert (answer["delivery-count"], answer["link-credit"], answer["next-incoming-id"]) == (3, 2, 3)
    assert answer["incoming-window"] == 256 - 3


def test_an_echo_of_a_session_is_answered():
    stranger = Stranger(OPENING, BEGINNING)
    stranger.answers()
    stranger.say(flow(echo=True))
    (answer,) = stranger.answers()
    assert (answer.type.name, answer["handle"], answer["incoming-window"]) == ("flow", None, 256)


def test_a_drain_without_credit_is_answered():
    stranger = Stranger(OPENING, BEGINNING, attach(0, role=True))
    stranger.answers()
    stranger.say(flow(handle=0, delivery_count=0, link_credit=0, drain=True))
    (answer,) = stranger.answers()
    assert (answer.type.name, answer["handle"], answer["link-credit"], answer["drain"]) == ("flow", 0, 0, True)


def test_a_drain_with_credit_is_answered_once():
    stranger = Stranger(OPENING, BEGINNING, attach(0, role=True))
    (link,) = (event.link for event in stranger.events if isinstance(event, LinkAttached))
    stranger.answers()
    stranger.say(flow(handle=0, delivery_count=0, link_credit=2, drain=True))
    assert stranger.answers() == []
    link.drained()
    (answer,) = stranger.answers()
    assert (answer["delivery-count"], answer["link-credit"]) == (2, 0)


# What a delivery says that cannot be kept
@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"message_format": 1}, "transfer.message-format: expected 0, got 1"),
        (
            {"state": CompositeValue(BY_CODE[0x23], {"section-number": 0, "section-offset": 0})},
            "expected an outcome or none, got received",
        ),
        ({"state": CompositeValue(BY_CODE[0x33], {"txn-id": b"x"})}, "expected an outcome or none, got declared"),
    ],
)
def test_what_cannot_be_kept_of_a_delivery_ends_its_link_and_no_other(fields, sentence):
    stranger = Stranger(OPENING, BEGINNING, attach(0), attach(1, "other"))
    faulty, other = (event.link for event in stranger.events if isinstance(event, LinkAttached))
    faulty.grant(5)
    other.grant(5)
    stranger.answers()
    stranger.say(
        said(0x14, handle=0, delivery_id=0, delivery_tag=b"t", **fields),
        said(0x14, handle=0, delivery_id=1, delivery_tag=b"t"),
        said(0x14, handle=1, delivery_id=2, delivery_tag=b"t"),
    )
    (detached,) = (event for event in stranger.events if isinstance(event, LinkDetached))
    assert (detached.link, detached.error) == (faulty, faulty.fault)
    (answer,) = (each for each in stranger.answers() if each.type.name == "detach")
    assert answer["error"]["condition"] == "amqp:not-implemented"
    assert sentence in answer["error"]["description"]
    assert other.is_open
    assert other.queued == 1
    stranger.say(said(0x16, handle=0, closed=True))
    assert faulty.is_gone
    assert stranger.error() is None


LEAVING = {
    "detach": said(0x16, handle=0, closed=False),
    "close of the link": said(0x16, handle=0, closed=True),
    "end": said(0x17),
    "close": said(0x18),
}


@pytest.mark.parametrize("leaving", LEAVING)
def test_who_sends_what_cannot_be_kept_and_leaves_at_once_leaves_nothing_behind(leaving):
    """Whoever owns the link hears that it ends before the endpoint gives the engine's link back."""
    stranger = Stranger(OPENING, BEGINNING, attach(0))
    (link,) = (event.link for event in stranger.events if isinstance(event, LinkAttached))
    link.grant(5)
    stranger.answers()
    stranger.endpoint.receive(
        said(0x14, handle=0, delivery_id=0, delivery_tag=b"t", message_format=1) + LEAVING[leaving]
    )
    told = []
    for event in stranger.endpoint.drain(stranger):
        if isinstance(event, LinkDetached) and not event.link.is_gone:
            told.append(event.link)
            event.link.close() if event.closed else event.link.detach()
    assert told == [link] or (told == [] and leaving == "close")
    assert link.current is None
    assert link.is_gone or leaving == "close"


@pytest.mark.parametrize("pieces", [1, 10, 100])
def test_the_credit_of_a_flow_may_be_as_large_as_there_is(pieces):
    frames = OPENING, BEGINNING, attach(role=True), flow(handle=0, delivery_count=0, link_credit=2**32 - 1)
    stranger = Stranger(*frames, pieces=pieces)
    (link,) = (event.link for event in stranger.events if isinstance(event, LinkAttached))
    assert stranger.error() is None
    assert link.credit == 2**31 - 1


def test_a_sender_need_not_say_in_a_flow_what_it_has_sent():
    stranger = Stranger(OPENING, BEGINNING, attach(), flow(handle=0, available=1))
    (link,) = (event.link for event in stranger.events if isinstance(event, LinkAttached))
    link.grant(5)
    stranger.answers()
    stranger.say(said(0x14, handle=0, delivery_id=0, delivery_tag=b"t", message_format=0))
    assert stranger.error() is None
    assert link.current is not None


LISTS = {
    "list8": lambda items: b"\xc0" + bytes([len(items) + 1, 2]) + items,
    "list32": lambda items: b"\xd0" + (len(items) + 4).to_bytes(4) + (2).to_bytes(4) + items,
}


@pytest.mark.parametrize("list_of", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize(("items", "is_good"), [(b"\xa3\1a\xa1\1b", True), (b"\xa3\1a\x50\1", False)])
def test_symbols_may_come_in_a_list_in_which_there_is_nothing_else(list_of, items, is_good):
    stranger = Stranger(raw_frame(0x10, [encode("x"), *[b"\x40"] * 6, list_of(items)]))
    error = stranger.error()
    assert (None if error is None else error[0]) == (None if is_good else "amqp:decode-error")


def test_descriptors_of_eight_bytes_and_lists_of_any_form_are_read():
    body = b"\x00\x80" + (0x10).to_bytes(8) + b"\xc0\x04\x01\xa1\x01x"
    long_form = (len(body) + 8).to_bytes(4) + b"\x02\x00\x00\x00" + body
    assert next(type(event) for event in Stranger(long_form, BEGINNING).events) is Opened
    assert encode(Described(ULong(0x17), [])) == b"\x00\x53\x17\x45"
