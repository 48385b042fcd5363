"""One link stitched to one link: what passes through, and what stays when one of them is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from mesh_tests.outcomes import EVERY_KIND, outcome_id, set_transactional, told
from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from router.forwarding.copies import Copies
from router.forwarding.relay import Relay
from router.timers import RetryDelay
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, MODIFIED_FAILED, Outcome

PATIENCE_S = 2.0
COPIES_BYTES = 1_000_000


@dataclass
class Stitched:
    """``left``: what the relay told of ends whose peer left, and whether they closed."""

    rig: Rig
    relay: Any
    producer: Producer
    consumer: Consumer
    left: list[tuple[Any, bool]] = field(default_factory=list)


@pytest.fixture
def stitched(rig: Rig) -> Stitched:
    producer, incoming = rig.incoming()
    consumer, outgoing = rig.outgoing()
    left: list[tuple[Any, bool]] = []
    relay = Relay(lambda link, closed, error: left.append((link, closed)), lambda link: None, rig.recorder)
    relay.stitch(incoming, outgoing)
    return Stitched(rig, relay, producer, consumer, left)


def grant(stitched: Stitched, credit: int) -> None:
    stitched.consumer.link.grant(credit)
    stitched.rig.run()


def test_the_takers_credit_is_the_producers(stitched: Stitched):
    assert stitched.producer.link.credit == 0
    grant(stitched, 7)
    assert stitched.producer.link.credit == 7
    stitched.producer.send(b"1", b"2")
    stitched.rig.run()
    assert stitched.consumer.link.credit == stitched.producer.link.credit == 5
    grant(stitched, 3)
    assert stitched.producer.link.credit == 8
    stitched.consumer.link.set_credit(1)
    stitched.rig.run()
    assert stitched.producer.link.credit == 1


@pytest.mark.parametrize("outcome", EVERY_KIND, ids=outcome_id)
def test_a_message_passes_with_its_tag_and_its_outcome_comes_back(stitched: Stitched, outcome: Outcome):
    grant(stitched, 1)
    stitched.producer.send(b"1")
    stitched.rig.run()
    assert stitched.consumer.messages == [b"1"]
    assert deliveries.tag(stitched.consumer.held[0]) == b"1"
    stitched.consumer.answer(outcome)
    stitched.rig.run()
    assert [told(each) for _, each in stitched.producer.outcomes] == [told(outcome)]


def test_the_state_that_a_producer_gives_passes_too(stitched: Stitched):
    grant(stitched, 1)
    delivery = stitched.producer.begin(b"1")
    set_transactional(delivery)
    stitched.producer.link.finish()
    stitched.rig.run()
    set_transactional(delivery)
    stitched.producer.connection.client.mark_dirty()
    stitched.rig.run()
    assert deliveries.remote_state(stitched.consumer.held[0]) == 0x34


def test_a_message_streams_through_as_it_comes(stitched: Stitched):
    grant(stitched, 1)
    stitched.producer.begin(b"beginning ")
    stitched.rig.run()
    assert stitched.consumer.partial == b"beginning "
    stitched.producer.link.send(b"end")
    stitched.producer.link.finish()
    stitched.rig.run()
    assert stitched.consumer.messages == [b"beginning end"]


def test_a_drain_passes_and_so_does_its_answer(stitched: Stitched):
    grant(stitched, 3)
    stitched.consumer.link.request_drain(2)
    stitched.rig.run()
    producer = stitched.producer
    assert (producer.link.is_draining, producer.link.credit) == (True, 5)
    producer.send(b"1")
    stitched.rig.run()
    assert stitched.consumer.link.is_drain_pending
    producer.link.drained()
    stitched.rig.run()
    assert not stitched.consumer.link.is_drain_pending
    assert stitched.consumer.messages == [b"1"]
    assert stitched.consumer.link.credit == producer.link.credit == 0


def test_a_drain_is_answered_only_behind_what_came_before_the_answer(stitched: Stitched):
    grant(stitched, 10)
    stitched.consumer.connection.is_stalled = True
    stitched.consumer.link.request_drain(0)
    stitched.rig.run()
    stitched.producer.send(bytes(60_000), bytes(60_000), bytes(60_000))
    stitched.producer.link.drained()
    stitched.rig.run()
    stitched.consumer.connection.is_stalled = False
    stitched.rig.run()
    assert len(stitched.consumer.messages) == 3
    assert not stitched.consumer.link.is_drain_pending


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("end", ["producer", "consumer"])
def test_it_is_told_which_end_left_and_how(stitched: Stitched, end: str, closes: bool):
    link = getattr(stitched, end).link
    link.close() if closes else link.detach()
    stitched.rig.run()
    expected = stitched.relay.inlet.link if end == "producer" else stitched.relay.taker.link
    assert stitched.left == [(expected, closes)]


def test_another_taker_in_the_place_of_a_lost_one_gives_its_credit_and_gets_what_comes(stitched: Stitched):
    grant(stitched, 5)
    stitched.producer.send(b"1")
    stitched.rig.run()
    stitched.rig.cut(stitched.consumer.connection)
    assert [told(outcome) for _, outcome in stitched.producer.outcomes] == [told(MODIFIED_FAILED)]
    other, outgoing = stitched.rig.outgoing()
    stitched.relay.replace(outgoing)
    other.link.grant(2)
    stitched.rig.run()
    assert stitched.producer.link.credit == 2
    stitched.producer.send(b"2")
    stitched.rig.run()
    assert other.messages == [b"2"]


def test_another_producer_in_the_place_of_a_lost_one_may_use_its_tags_again(stitched: Stitched):
    grant(stitched, 5)
    stitched.producer.send(b"1")
    stitched.rig.run()
    stitched.rig.cut(stitched.producer.connection)
    other, incoming = stitched.rig.incoming()
    stitched.relay.replace(incoming)
    stitched.rig.run()
    assert other.link.credit == 4
    other.send(b"2")
    stitched.rig.run()
    tags = [deliveries.tag(delivery) for delivery in stitched.consumer.held]
    assert len(set(tags)) == 2
    stitched.consumer.answer(ACCEPTED)
    stitched.rig.run()
    assert [message for message, _ in other.outcomes] == [b"2"]
    assert stitched.producer.outcomes == []


def test_what_crosses_a_reduction_of_credit_waits_for_more(stitched: Stitched):
    grant(stitched, 2)
    stitched.producer.send(b"1", b"2")
    stitched.consumer.link.set_credit(0)
    stitched.rig.carry_to_router(stitched.consumer)
    stitched.rig.run()
    assert stitched.consumer.messages == []
    grant(stitched, 2)
    assert stitched.consumer.messages == [b"1", b"2"]


def test_what_it_holds_for_too_long_is_given_back(rig: Rig):
    producer, incoming = rig.incoming()
    consumer, outgoing = rig.outgoing()
    relay = Relay(lambda *_: None, lambda _: None, rig.recorder, patience=RetryDelay(rig.timers, PATIENCE_S))
    relay.stitch(incoming, outgoing)
    consumer.link.grant(2)
    rig.run()
    producer.send(b"1")
    consumer.link.set_credit(0)
    rig.carry_to_router(consumer)
    rig.run()
    assert producer.outcomes == []
    rig.advance(PATIENCE_S + 0.1)
    assert [told(outcome) for _, outcome in producer.outcomes] == [told(deliveries.RELEASED)]
    assert consumer.messages == []


def crossed(
    rig: Rig, *bodies: bytes, settled: tuple[bool, ...], copies: Copies | None = None
) -> tuple[Producer, Consumer]:
    """Sent at a transit router's, while the credit for it was taken back."""
    producer, incoming = rig.incoming()
    consumer, outgoing = rig.outgoing()
    relay = Relay(
        lambda *_: None,
        lambda _: None,
        rig.recorder,
        patience=RetryDelay(rig.timers, PATIENCE_S),
        is_transit=True,
        copies=copies or Copies(COPIES_BYTES),
    )
    relay.stitch(incoming, outgoing)
    consumer.link.grant(len(bodies))
    rig.run()
    for body, is_settled in zip(bodies, settled, strict=True):
        producer.send(body, settled=is_settled)
    consumer.link.set_credit(0)
    rig.carry_to_router(consumer)
    rig.run()
    return producer, consumer


@pytest.mark.parametrize("large", [1, 50_000, 400_000], ids=["small", "piecewise", "too large to be read ahead"])
def test_what_came_settled_waits_as_long_as_it_takes(rig: Rig, large: int):
    bodies = [b"1" * large, b"2" * large, b"3"]
    _, consumer = crossed(rig, *bodies, settled=(True, True, True))
    for _ in range(3):
        rig.advance(PATIENCE_S + 0.1)
    assert consumer.messages == []
    for _ in bodies:
        consumer.link.grant(1)
        rig.run()
    assert consumer.messages == bodies


def test_what_is_behind_it_is_given_back(rig: Rig):
    bodies = [b"1", b"2", b"3" * 400_000, b"4", b"5"]
    producer, consumer = crossed(rig, *bodies, settled=(True, False, False, True, False))
    rig.advance(PATIENCE_S + 0.1)
    assert [body for body, _ in producer.outcomes] == [bodies[1], bodies[2], bodies[4]]
    consumer.link.grant(10)
    rig.run()
    assert consumer.messages == [b"1", b"4"]
    assert producer.link.credit == consumer.link.credit == 8


def test_also_when_there_is_room_to_read_it_only_later(rig: Rig):
    copies = Copies(1000)
    _, first = crossed(rig, bytes(1000), settled=(True,), copies=copies)
    rig.advance(PATIENCE_S + 0.1)
    producer, consumer = crossed(rig, bytes(1000), b"2", settled=(True, False), copies=copies)
    for _ in range(3):
        rig.advance(PATIENCE_S + 0.1)
    assert producer.outcomes == []
    first.link.grant(1)
    rig.run()
    assert len(first.messages) == 1
    rig.advance(PATIENCE_S + 0.1)
    assert [body for body, _ in producer.outcomes] == [b"2"]
    assert consumer.messages == []


def test_a_drain_of_its_taker_is_answered_behind_what_was_read_ahead(rig: Rig):
    producer, consumer = crossed(rig, b"1", b"2", settled=(True, True))
    rig.advance(PATIENCE_S + 0.1)
    consumer.link.request_drain(1)
    rig.run()
    assert consumer.messages == [b"1"]
    consumer.link.request_drain(2)
    rig.run()
    assert consumer.messages == [b"1", b"2"]
    assert consumer.link.is_drain_pending
    producer.link.drained()
    rig.run()
    assert not consumer.link.is_drain_pending


def test_what_was_read_ahead_waits_for_room(rig: Rig):
    bodies = [bytes(50_000)] * 5
    _, consumer = crossed(rig, *bodies, settled=(True,) * 5)
    rig.advance(PATIENCE_S + 0.1)
    consumer.link.grant(10)
    rig.carry_to_router(consumer)
    consumer.connection.is_stalled = True
    rig.run()
    assert len(consumer.messages) < len(bodies)
    consumer.connection.is_stalled = False
    rig.run()
    assert consumer.messages == bodies


def test_while_its_taker_settles_nothing_is_given_back(rig: Rig):
    """It is slow, that is all."""
    producer, consumer = crossed(rig, b"1", b"2", settled=(False, False))
    consumer.link.grant(3)
    rig.run()
    producer.send(b"3")
    consumer.link.set_credit(0)
    rig.carry_to_router(consumer)
    rig.run()
    for _ in range(2):
        rig.advance(PATIENCE_S * 0.9)
        consumer.answer(ACCEPTED, 1)
        rig.run()
    assert [body for body, _ in producer.outcomes] == [b"1", b"2"]
    rig.advance(PATIENCE_S * 1.3)
    assert [body for body, _ in producer.outcomes] == [b"1", b"2", b"3"]
