"""The load generator against the endpoints that routers are made of, and against bytes that are wrong."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.bench.bench_connection import BenchConnection, run
from mesh.bench.consumer import HoldingConsumer, TimedConsumer
from mesh.bench.dial import dial
from mesh.bench.faults import BenchRefused, Malformed, PeerGone
from mesh.bench.frames import codes
from mesh.bench.handshake import LinkPlan
from mesh.bench.performatives import attach_frame, begin_frame, encode, flow_frame
from mesh.bench.producer import BoundedProducer, PacedProducer
from mesh.bench.values import FALSE, NULL, TRUE, described, uint
from mesh.client.errors import MeshError
from mesh_tests.bench.messages import RUN, body_of, payload, stamp_of
from mesh_tests.bench.pair import (
    BODY_BYTES,
    SOON_S,
    STALL_S,
    Pair,
    a_consumer,
    a_producer,
    consume,
    disposition,
    frames_of,
    produce,
    transfer,
)
from mesh_tests.bench.wire_peer import REFUSED, WirePeer
from wire.outcome import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, rejected


@pytest.fixture
def pair() -> Any:
    made: list[Pair] = []

    def make(link: Any, **options: Any) -> Pair:
        made.append(Pair(link, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


# What it sends is understood
@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 60),
    body_bytes=st.one_of(st.integers(16, 300), st.sampled_from([255, 256, 4096, 70_000])),
    frame_bytes=st.sampled_from([512, 4096, 65536]),
    window_frames=st.sampled_from([2, 10, 200]),
    credit=st.integers(1, 50),
    is_presettled=st.booleans(),
    is_durable=st.booleans(),
)
def test_every_message_reaches_an_endpoint_whole_in_order_and_is_settled(
    count: int,
    body_bytes: int,
    frame_bytes: int,
    window_frames: int,
    credit: int,
    is_presettled: bool,
    is_durable: bool,
) -> None:
    with WirePeer(credit=credit, max_frame_bytes=frame_bytes, window_frames=window_frames) as peer:
        producer = produce(peer, count=count, body_bytes=body_bytes, is_presettled=is_presettled, is_durable=is_durable)
    assert [stamp_of(message) for message, _ in peer.messages] == [(RUN, number, 0) for number in range(count)]
    assert {len(body_of(message)) for message, _ in peer.messages} == {body_bytes}
    assert {is_settled for _, is_settled in peer.messages} == {is_presettled}
    assert {message.startswith(b"\x00\x53\x70") for message, _ in peer.messages} == {is_durable}
    assert (producer.sent, producer.settled, producer.is_done) == (count, count, True)
    assert producer.outcomes_counted == ({} if is_presettled else {"accepted": count})


def test_a_message_of_many_frames_is_sent_no_faster_than_asked() -> None:
    size, bytes_per_s = 300_000, 3_000_000
    with WirePeer() as peer:
        producer = produce(peer, count=2, body_bytes=size, bytes_per_s=bytes_per_s)
    assert producer.settled == 2
    assert producer.ended_at - producer.started_at >= (2 * size - 2 * 65536) / bytes_per_s


def test_no_more_is_sent_than_there_is_credit() -> None:
    with WirePeer(credit=3, outcome_of=lambda _: None) as peer:
        producer = produce(peer, SOON_S)
    assert len(peer.messages) == producer.sent == 3
    assert not producer.is_done


def test_a_bounded_producer_has_no_more_in_flight_than_it_may() -> None:
    with WirePeer(credit=50, outcome_of=lambda number: ACCEPTED if number < 6 else None) as peer:
        producer = produce(peer, SOON_S, kind=BoundedProducer, count=20, in_flight=3)
    assert (producer.sent, producer.settled) == (9, 6)


def test_a_bounded_producer_knows_how_long_each_outcome_took() -> None:
    slow_s = 0.05

    def outcome_of(number: int) -> Outcome:
        time.sleep(slow_s if number == 2 else 0.0)
        return ACCEPTED

    with WirePeer(outcome_of=outcome_of) as peer:
        producer = produce(peer, kind=BoundedProducer, count=5, in_flight=1)
    waits_s = producer.waits_s.tolist()
    assert len(waits_s) == 5
    assert all(wait_s > 0 for wait_s in waits_s)
    assert waits_s[2] == max(waits_s) >= slow_s


def test_each_outcome_is_counted_by_its_name() -> None:
    outcomes = [ACCEPTED, RELEASED, MODIFIED_FAILED, rejected("amqp:not-allowed", "no"), ACCEPTED]
    with WirePeer(outcome_of=outcomes.__getitem__) as peer:
        producer = produce(peer, count=len(outcomes))
    assert producer.outcomes_counted == {"accepted": 2, "released": 1, "modified": 1, "rejected": 1}


# What is sent to it is understood
@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 60),
    body_bytes=st.one_of(st.integers(16, 300), st.sampled_from([255, 256, 4096, 70_000])),
    window=st.integers(1, 50),
    settled=st.lists(st.booleans(), min_size=60, max_size=60),
    is_each=st.booleans(),
)
def test_every_message_of_an_endpoint_is_received_once_and_settled(
    count: int, body_bytes: int, window: int, settled: list[bool], is_each: bool
) -> None:
    to_send = [(payload(number, body_bytes), settled[number]) for number in range(count)]
    with WirePeer(to_send=to_send) as peer:
        consumer = consume(peer, count=count, body_bytes=body_bytes, window=window, is_each=is_each)
    assert (consumer.received, consumer.is_done) == (count, True)
    assert (consumer.doubled, consumer.reordered, consumer.foreign, consumer.damaged) == (0, 0, 0, 0)
    assert peer.outcomes == [ACCEPTED] * settled[:count].count(False)


def test_a_holding_consumer_takes_what_it_has_credit_for_and_settles_nothing() -> None:
    with WirePeer(to_send=[(payload(number), False) for number in range(5)]) as peer:
        consumer = consume(peer, SOON_S, kind=HoldingConsumer, count=5, window=4)
    assert (consumer.received, consumer.is_done, peer.outcomes) == (4, False, [])


SECTIONS = {
    "header": b"\x00\x53\x70\xc0\x02\x01\x41",
    "annotations": b"\x00\x53\x72\xc1\x07\x02\xa3\x01k\xa1\x01v",
    "properties": b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x73\xd0\x00\x00\x00\x07\x00\x00\x00\x01\xa1\x01a",
}


def test_a_body_is_found_behind_what_a_broker_puts_before_it() -> None:
    to_send = [(payload(0, sections=b"".join(SECTIONS.values())), False)]
    with WirePeer(to_send=to_send) as peer:
        assert consume(peer, count=1).received == 1


def test_a_string_or_binary_value_is_a_body_too() -> None:
    as_value = payload(0).replace(b"\x00\x53\x75", b"\x00\x53\x77", 1)
    with WirePeer(to_send=[(as_value, False)]) as peer:
        assert consume(peer, count=1).received == 1


# What goes wrong is counted
def test_what_comes_again_late_broken_or_from_elsewhere_is_told_apart(pair: Any) -> None:
    there = pair(a_consumer(count=5))
    bodies = [
        payload(0),
        payload(2),
        payload(1),
        payload(2),
        payload(3, 99),
        payload(9),
        payload(4, run=8),
        b"\x00\x53\x75\xa0\x05short",
    ]
    assert not there.say(*(transfer(number, body) for number, body in enumerate(bodies)))
    got = there.link
    assert (got.received, got.reordered, got.doubled, got.damaged, got.foreign) == (3, 1, 1, 2, 2)


def test_settled_twice_is_counted_and_changes_nothing(pair: Any) -> None:
    there = pair(a_producer(count=4))
    there.say(flow_frame(0, 0, 0, 0, 3))
    there.say(disposition(0, 1), disposition(1, 2))
    assert (there.link.settled, there.link.settled_twice) == (3, 1)


def test_settling_what_was_never_sent_is_a_fault_of_the_peer(pair: Any) -> None:
    there = pair(a_producer(count=4))
    there.say(flow_frame(0, 0, 0, 0, 2))
    with pytest.raises(PeerGone, match="settled messages 1 to 2 when 2 had been sent"):
        there.say(disposition(1, 2))


def test_an_outcome_without_settlement_is_settled_by_the_sender(pair: Any) -> None:
    there = pair(a_producer(count=2))
    there.say(flow_frame(0, 0, 0, 0, 2))
    there.heard()
    assert there.say(disposition(0, 1, is_settled=False))
    found, _ = codes(there.heard())
    assert [code for code, _, _ in found] == [0x15]
    assert there.link.outcomes_counted == {"accepted": 2}


def test_the_state_received_settles_nothing(pair: Any) -> None:
    there = pair(a_producer(count=2))
    there.say(flow_frame(0, 0, 0, 0, 2))
    assert not there.say(disposition(0, 1, state=0x23, is_settled=False))
    assert there.link.settled == 0


def test_a_drain_is_answered_with_the_credit_used_up(pair: Any) -> None:
    there = pair(a_producer(count=1))
    drain = encode(0, 0x13, uint(0), uint(100), uint(0), uint(100), uint(0), uint(0), uint(5), NULL, TRUE)
    there.say(flow_frame(0, 0, 0, 0, 1))
    there.heard()
    there.say(drain)
    answer = there.heard()
    assert codes(answer)[0][0][0] == 0x13
    assert uint(5) + uint(0) in answer, "delivery-count 5, link-credit 0"


def test_an_aborted_delivery_is_forgotten_and_its_credit_used(pair: Any) -> None:
    there = pair(a_consumer(count=1))
    aborted = encode(0, 0x14, uint(0), NULL, NULL, NULL, NULL, FALSE, NULL, NULL, NULL, TRUE)
    whole = payload(0)
    assert there.say(transfer(0, whole[:40], has_more=True), aborted, transfer(1, whole))
    assert (there.link.received, there.link.damaged) == (1, 0)


# What ends it
def test_a_refused_link_is_told_with_its_condition() -> None:
    with WirePeer() as peer, pytest.raises(BenchRefused) as refused:
        dial(peer.place, [LinkPlan(REFUSED, True)])
    assert refused.value.code == "amqp:not-found"
    assert str(refused.value) == f"cannot receive from {REFUSED}: no such address"


ERROR = described(0x1D, [b"\xa3\x0bamqp:stolen", b"\xa1\x05taken"])


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (encode(0, 0x16, uint(0), TRUE, ERROR), "cannot send to a: taken"),
        (encode(0, 0x17, ERROR), "cannot send to a: taken"),
        (encode(0, 0x18, ERROR), "the peer closed the connection: taken"),
        (encode(0, 0x18), "the peer closed the connection: without a reason"),
        (begin_frame(0), "the peer sent an unexpected begin"),
        (transfer(0, payload(0)), "the peer sent a message to a sender"),
    ],
)
def test_what_ends_it_in_the_middle_is_said_in_words(pair: Any, frame: bytes, words: str) -> None:
    with pytest.raises(MeshError, match=words):
        pair(a_producer()).say(frame)


def test_a_connection_that_ends_without_a_word_is_said_so(pair: Any) -> None:
    there = pair(a_producer())
    there.theirs.close()
    with pytest.raises(PeerGone, match="connection lost"):
        run([there.carrier], SOON_S)


VALID = st.sampled_from(
    [
        transfer(0, payload(0)),
        transfer(1, payload(1), is_settled=True),
        transfer(2, payload(2)[:50], has_more=True),
        disposition(0, 0),
        disposition(0, 3, state=None),
        flow_frame(0, 0, 0, 0, 5),
        attach_frame(0, "l", is_receiver=True, address="a"),
        ERROR,
    ]
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Frames of which some bytes were changed, or that are cut."""
    data = bytearray(b"".join(draw(st.lists(VALID, min_size=1, max_size=5))))
    for at, value in draw(st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=4)):
        data[at] = value
    return bytes(data[: draw(st.integers(0, len(data)))])


@settings(max_examples=300, deadline=None)
@given(data=st.one_of(st.binary(max_size=200), damaged()), is_producer=st.booleans())
def test_wrong_bytes_end_in_a_sentence_or_nothing(data: bytes, is_producer: bool) -> None:
    link = a_producer() if is_producer else a_consumer()
    there = Pair(link)
    try:
        with suppress(MeshError):
            there.carrier.feed(data)
        assert link.is_done in (False, True)
    finally:
        there.close()


@given(data=st.one_of(st.binary(max_size=200), damaged()))
def test_performatives_are_listed_as_far_as_they_are_whole(data: bytes) -> None:
    try:
        found, size = codes(data)
    except Malformed:
        return
    assert 0 <= size <= len(data)
    assert all(data[at + 5] == 0 and at < size for _, _, at in found)


# Pace
def test_a_paced_sender_sends_what_is_due_and_its_consumer_times_it() -> None:
    one, other = socket.socketpair()
    with one, other:
        paced = PacedProducer(
            0,
            "s",
            1000,
            rate_per_s=500,
            seconds=0.2,
            most_seconds=0.2,
            companions=[],
            run=RUN,
            body_bytes=BODY_BYTES,
            frame_bytes=65536,
        )
        timed = TimedConsumer(0, "r", 0, 0, source=paced, run=RUN, body_bytes=BODY_BYTES, window=1000)
        carriers = [BenchConnection(each.fileno(), 65536, 3600.0) for each in (one, other)]
        carriers[0].add(paced, 0)
        carriers[1].add(timed, 0)
        started_at = time.monotonic()
        assert run(carriers, STALL_S)
        took_s = time.monotonic() - started_at
    sent_ns, took_ns = timed.samples
    assert paced.sent == timed.received == len(took_ns) == 100
    assert took_s >= 99 / 500
    assert list(sent_ns) == sorted(sent_ns)
    assert max(took_ns) < took_s * 1e9


def test_what_is_due_without_credit_grows_old(pair: Any) -> None:
    paced = PacedProducer(
        0,
        "s",
        1000,
        rate_per_s=100,
        seconds=0.05,
        most_seconds=0.05,
        companions=[],
        run=RUN,
        body_bytes=BODY_BYTES,
        frame_bytes=65536,
    )
    there = pair(paced)
    run([there.carrier], SOON_S)
    there.say(flow_frame(0, 0, 0, 0, 100))
    data = there.heard()
    ages_ns = [time.monotonic_ns() - stamp_of(data[at + 29 : end])[2] for at, end in frames_of(data)]
    assert len(ages_ns) == 5
    assert min(ages_ns) > SOON_S * 1e9 / 2
