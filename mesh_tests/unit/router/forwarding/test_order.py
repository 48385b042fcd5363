"""When does an inlet go on with another circuit, after deliveries of which it will not hear?"""

from __future__ import annotations

from typing import Any

import pytest

from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from router.forwarding.ends import Taker
from wire import delivery as deliveries
from wire.delivery import RELEASED
from wire.errors import AmqpError

LARGE = b"L" * 70_000
BARRIER = b""


def far(rig: Rig, group: Any, egress: str, credit: int = 10) -> Consumer:
    circuit = rig.consumer(group, credit, cost=1)
    circuit.taker.egress = egress
    return circuit


def stream_beside(rig: Rig, group: Any, egress: str = "r2") -> Consumer:
    """Where large ones go."""
    consumer, link = rig.outgoing()
    consumer.taker = Taker(link, group, 1, is_stream=True)
    consumer.taker.egress = egress
    group.add_stream(consumer.taker)
    consumer.link.grant(10)
    rig.open_stream = lambda *_: consumer.taker
    rig.run()
    return consumer


def begin_large(rig: Rig, producer: Producer) -> None:
    producer.begin(LARGE)
    rig.run()


@pytest.fixture
def group(rig: Rig) -> Any:
    return rig.anycast()


def test_a_large_one_waits_until_the_small_ones_before_it_were_passed_on(rig: Rig, group):
    circuit, stream, producer = far(rig, group, "r2"), stream_beside(rig, group), rig.producer(group)
    producer.send(b"1", b"2", settled=True)
    begin_large(rig, producer)
    assert (circuit.messages, stream.partial) == ([b"1", b"2", BARRIER], b"")
    circuit.answer()
    rig.run()
    assert len(stream.partial) == len(LARGE)


def test_a_small_one_waits_until_the_large_one_before_it_was_passed_on(rig: Rig, group):
    circuit, stream, producer = far(rig, group, "r2"), stream_beside(rig, group), rig.producer(group)
    delivery = producer.begin(LARGE)
    rig.run()
    producer.link.finish()
    deliveries.settle(delivery)
    del producer.open[delivery]
    producer.send(b"1")
    rig.run()
    assert (stream.messages, circuit.messages) == ([LARGE, BARRIER], [])
    stream.answer()
    rig.run()
    assert circuit.messages == [b"1"]


def test_what_the_producer_settled_before_its_outcome_is_waited_for_too(rig: Rig, group):
    circuit, stream, producer = far(rig, group, "r2"), stream_beside(rig, group), rig.producer(group)
    producer.send(b"1")
    rig.run()
    delivery = next(iter(producer.open))
    deliveries.settle(delivery)
    del producer.open[delivery]
    begin_large(rig, producer)
    assert (circuit.messages, stream.partial) == ([b"1", BARRIER], b"")


def test_one_that_was_given_back_says_nothing_of_those_before_it(rig: Rig, group):
    circuit, stream, producer = far(rig, group, "r2"), stream_beside(rig, group), rig.producer(group)
    producer.send(b"1", settled=True)
    begin_large(rig, producer)
    circuit.answer(RELEASED)
    rig.run()
    assert (circuit.messages, stream.partial) == ([b"1", BARRIER, BARRIER], b"")
    circuit.answer()
    rig.run()
    assert len(stream.partial) == len(LARGE)


def test_a_large_one_does_not_wait_for_outcomes_of_small_ones_that_were_passed_on(rig: Rig, group):
    circuit, stream, producer = far(rig, group, "r2"), stream_beside(rig, group), rig.producer(group)
    producer.send(b"1", b"2")
    begin_large(rig, producer)
    assert (circuit.messages, stream.partial) == ([b"1", b"2", BARRIER], b"")
    circuit.answer_last()
    rig.run()
    assert (len(stream.partial), producer.outcomes) == (len(LARGE), [])


def test_a_small_one_does_not_wait_for_the_outcome_of_a_large_one_that_was_passed_on(rig: Rig, group):
    circuit, stream, producer = far(rig, group, "r2"), stream_beside(rig, group), rig.producer(group)
    begin_large(rig, producer)
    producer.link.finish()
    producer.send(b"1")
    rig.run()
    assert (stream.messages, circuit.messages) == ([LARGE, BARRIER], [])
    stream.answer_last()
    rig.run()
    assert (circuit.messages, producer.outcomes) == ([b"1"], [])


def test_nobody_is_asked_where_all_have_their_outcomes(rig: Rig, group):
    circuit, stream, producer = far(rig, group, "r2"), stream_beside(rig, group), rig.producer(group)
    producer.send(b"1")
    rig.run()
    circuit.answer()
    rig.run()
    begin_large(rig, producer)
    assert (circuit.messages, len(stream.partial)) == ([b"1"], len(LARGE))


@pytest.mark.parametrize("is_settled", [True, False], ids=["settled", "unsettled"])
def test_other_egresses_are_not_waited_for(rig: Rig, group, is_settled: bool):
    stuck, stream, producer = far(rig, group, "r3", 1), stream_beside(rig, group), rig.producer(group)
    producer.send(b"1", settled=is_settled)
    rig.run()
    circuit = far(rig, group, "r2")
    begin_large(rig, producer)
    assert (stuck.messages, circuit.messages, len(stream.partial)) == ([b"1"], [], len(LARGE))


def test_a_circuit_that_is_lost_is_not_waited_for(rig: Rig, group):
    stream, producer = stream_beside(rig, group), rig.producer(group)
    lost, circuit = far(rig, group, "r2", 2), far(rig, group, "r2", 0)
    producer.send(b"1", settled=True)
    begin_large(rig, producer)
    circuit.link.grant(10)
    rig.run()
    assert (lost.messages, stream.partial) == ([b"1", BARRIER], b"")
    lost.taker.on_left(True, AmqpError("amqp:internal-error", "lost"))
    rig.run()
    assert (circuit.messages, len(stream.partial)) == ([], len(LARGE))


def test_the_egress_answers_when_it_comes_to_it_and_shows_it_to_nobody(rig: Rig, group):
    circuit, consumer = rig.producer(group, is_circuit=True), rig.consumer(group, 1)
    circuit.send(b"1", b"2", settled=True)
    barrier = circuit.link.start(b"\0\0\1")
    circuit.link.finish()
    circuit.open[barrier] = BARRIER
    rig.run()
    assert (consumer.messages, circuit.outcomes) == ([b"1"], [])
    consumer.link.grant(1)
    rig.run()
    assert (consumer.messages, circuit.outcomes) == ([b"1", b"2"], [(BARRIER, deliveries.ACCEPTED)])


def test_a_multicast_passes_it_on_and_answers_when_all_behind_it_did(rig: Rig):
    group = rig.multicast()
    circuit, here = rig.producer(group, is_circuit=True), rig.consumer(group)
    branches = [rig.consumer(group, cost=1, upstream=circuit.inlet) for _ in range(2)]
    barrier = circuit.link.start(b"\0\0\1")
    circuit.link.finish()
    circuit.open[barrier] = BARRIER
    rig.run()
    assert here.messages == []
    for branch in branches:
        assert (branch.messages, deliveries.tag(branch.held[0]), circuit.outcomes) == ([BARRIER], b"\0\0\1", [])
        branch.answer()
        rig.run()
    assert circuit.outcomes == [(BARRIER, deliveries.ACCEPTED)]


def test_the_next_goes_elsewhere_when_what_a_left_circuit_has_waits_for_credit(rig: Rig, group):
    """The new circuit to the same router is closer, but nothing may overtake what the left one has there."""
    left, producer = far(rig, group, "r2", credit=1), rig.producer(group)
    producer.send(b"1")
    rig.run()
    assert left.messages == [b"1"]
    group.leave_taker(left.taker)
    near = far(rig, group, "r2")
    other = rig.consumer(group, cost=9)
    other.taker.egress = "r3"
    producer.send(b"2")
    rig.run()
    assert (near.messages, other.messages) == ([], [b"2"])
