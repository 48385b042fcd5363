"""Is a producer's order kept between a link that all share and the stream that its large messages have beside it?"""

from __future__ import annotations

from typing import Any

import pytest

from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from router.forwarding.credit import PERIOD_S
from router.forwarding.ends import Taker
from wire import delivery as deliveries

LARGE = bytes(100_000)
BROKER = pytest.mark.parametrize("ends", [{"is_broker": True}], ids=["broker"], indirect=True)


class StreamingRig(Rig):
    """Whoever asks for a stream gets ``stream``."""

    stream: Any = None

    def open_stream(self, group: Any, taker: Any, inlet: Any) -> Any:
        return self.stream.taker if self.stream.taker.can_take else None

    def ours(self, group: Any, **kind: Any) -> Consumer:
        consumer, link = self.outgoing()
        consumer.taker = Taker(link, group, **kind)
        group.add_stream(consumer.taker) if consumer.taker.is_stream else group.add_taker(consumer.taker)
        consumer.link.grant(10)
        self.run()
        return consumer


@pytest.fixture(params=[{"cost": 1}, {"is_broker": True}], ids=["circuit", "broker"])
def ends(request: pytest.FixtureRequest) -> Any:
    """A producer, the link that it shares with others, and its stream."""
    rig = StreamingRig()
    group = rig.anycast()
    shared = rig.ours(group, **request.param)
    rig.stream = rig.ours(group, is_stream=True, **request.param)
    yield rig, rig.producer(group), shared
    rig.close()


def begin(rig: Rig, producer: Producer) -> None:
    producer.begin(LARGE)
    rig.run()


@BROKER
def test_a_large_message_waits_for_the_outcomes_of_small_ones_before_it(ends: tuple[StreamingRig, Producer, Consumer]):
    """A circuit would be asked: that is in `test_order`."""
    rig, producer, shared = ends
    producer.send(b"small")
    begin(rig, producer)
    assert shared.messages == [b"small"]
    assert not rig.stream.partial
    shared.answer()
    rig.run()
    assert rig.stream.partial == LARGE


@BROKER
def test_a_small_message_waits_for_the_outcome_of_a_large_one_before_it(ends: tuple[StreamingRig, Producer, Consumer]):
    rig, producer, shared = ends
    begin(rig, producer)
    producer.link.finish()
    producer.send(b"small")
    rig.run()
    assert (rig.stream.messages, shared.messages) == ([LARGE], [])
    rig.stream.answer()
    rig.run()
    assert shared.messages == [b"small"]


def test_a_large_message_that_is_all_there_goes_where_the_one_before_it_went(
    ends: tuple[StreamingRig, Producer, Consumer],
):
    rig, producer, shared = ends
    begin(rig, producer)
    producer.link.finish()
    producer.send(LARGE)
    rig.run()
    assert (rig.stream.messages, shared.messages) == ([LARGE, LARGE], [])


def test_others_go_on_beside_a_half_sent_message(ends: tuple[StreamingRig, Producer, Consumer]):
    rig, producer, shared = ends
    begin(rig, producer)
    other = rig.producer(producer.inlet.group)
    other.send(b"small")
    rig.run()
    assert shared.messages == [b"small"]


def test_the_closest_taker_is_counted_without_its_stream():
    """Both have the taker's credit, of which producers have a promise once."""
    rig = StreamingRig()
    group = rig.anycast(closest=True)
    rig.ours(group, cost=1)
    rig.stream = rig.ours(group, is_stream=True, cost=1)
    producer = rig.producer(group, limit=100)
    assert producer.link.credit == 10
    rig.close()


def test_a_stream_stands_for_one_producer_and_the_link_beside_it_for_all():
    """Of how many producers a delivery is one, its tag says behind its number."""
    rig = StreamingRig()
    group = rig.anycast()
    shared = rig.ours(group, cost=1)
    rig.stream = rig.ours(group, is_stream=True, cost=1)
    first, second = rig.producer(group), rig.producer(group)
    first.send(b"small")
    rig.advance(PERIOD_S)
    second.send(b"small")
    begin(rig, rig.producer(group))
    assert [deliveries.tag(delivery) for delivery in shared.held] == [b"\1", b"\0\2\2"]
    assert deliveries.tag(rig.stream.link.current) == b"\1"
    rig.close()


def test_a_large_message_that_comes_back_unread_is_promised_to_its_producer_as_before():
    rig = StreamingRig()
    group = rig.anycast()
    rig.ours(group, cost=1)
    rig.stream = rig.ours(group, is_stream=True, cost=1)
    producer = rig.producer(group)
    promised = producer.inlet.promised
    rig.stream.connection.router.is_output_blocked = True
    begin(rig, producer)
    rig.stream.link.set_credit(0)
    rig.run()
    rig.stream.connection.router.is_output_blocked = False
    rig.run()
    assert rig.stream.partial == b""
    assert producer.inlet.promised == promised
    rig.close()
