"""Is a producer's order kept between a link that all share and the stream that its large messages have beside it?"""

from __future__ import annotations

from typing import Any

import pytest

from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from router.forwarding.ends import Taker

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
