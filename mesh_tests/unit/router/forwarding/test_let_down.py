"""What comes again from its sender: who gets what waited here, and what are those told who have it? Decision 0028."""

from __future__ import annotations

import pytest

from mesh_tests.outcomes import told
from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED

FAR = 3
ANY_SIZE = 0


def let_down(producer: Producer, message: bytes) -> None:
    """As a router does that lost who sent it the message."""
    delivery = next(delivery for delivery, each in producer.open.items() if each == message)
    del producer.open[delivery]
    deliveries.set_outcome(delivery, MODIFIED_FAILED)
    deliveries.settle(delivery)


def waits_for_credit(rig: Rig) -> tuple[Producer, Consumer]:
    """Two messages came over a circuit for a consumer that took its credit back."""
    group = rig.anycast()
    consumer, producer = rig.consumer(group, credit=2), rig.producer(group, is_circuit=True)
    consumer.link.set_credit(0)
    producer.send(b"1", b"2")
    rig.run()
    assert consumer.messages == []
    return producer, consumer


def test_nobody_gets_what_its_router_let_down_while_it_waited(rig: Rig):
    producer, consumer = waits_for_credit(rig)
    let_down(producer, b"1")
    rig.run()
    consumer.link.grant(10)
    rig.run()
    assert consumer.messages == [b"2"]


def test_nobody_gets_what_a_taker_gave_back_before_its_circuit_was_lost(rig: Rig):
    group = rig.anycast()
    first, second = rig.consumer(group), rig.consumer(group, credit=0)
    producer = rig.producer(group, is_circuit=True)
    producer.send(b"1")
    rig.run()
    first.answer(RELEASED)
    rig.run()
    rig.cut(producer.connection)
    second.link.grant(10)
    rig.run()
    assert second.messages == []


@pytest.mark.parametrize(("max_message_bytes", "is_told"), [(None, True), (ANY_SIZE, False)], ids=["node", "client"])
def test_the_next_router_is_told_of_what_comes_again(rig: Rig, max_message_bytes: int | None, is_told: bool):
    group = rig.anycast()
    circuit = rig.consumer(group, cost=FAR)
    producer = rig.producer(group, max_message_bytes=max_message_bytes)
    producer.send(b"1")
    rig.run()
    (delivery,) = circuit.held
    rig.cut(producer.connection)
    assert deliveries.is_settled(delivery) == is_told
    assert deliveries.remote_outcome(delivery) == (MODIFIED_FAILED if is_told else None)


def test_a_consumer_that_has_it_may_answer_and_hears_that_it_may_not_count(rig: Rig):
    group = rig.anycast()
    consumer, producer = rig.consumer(group), rig.producer(group)
    producer.send(b"1")
    rig.run()
    (delivery,) = consumer.held
    rig.cut(producer.connection)
    assert not deliveries.is_settled(delivery)
    deliveries.set_outcome(delivery, ACCEPTED)
    rig.carry_to_router(consumer)
    rig.run()
    assert deliveries.is_settled(delivery)
    assert told(deliveries.remote_outcome(delivery)) == told(MODIFIED_FAILED)
