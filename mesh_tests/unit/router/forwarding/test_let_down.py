"""What comes again from its sender: who gets what waited here, and what are those told who have it? Decision 0028."""

from __future__ import annotations

from typing import Any

import pytest

from mesh_tests.outcomes import told
from mesh_tests.unit.router.forwarding.rig import Connection, Consumer, Producer, Rig
from router.forwarding.ends import Inlet
from router.forwarding.relay import Relay
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED

FAR = 3
ANY_SIZE = 0
BARRIER_TAG = b"\0\0\1"


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


def test_a_sender_that_does_not_settle_has_let_nothing_down(rig: Rig):
    producer, consumer = waits_for_credit(rig)
    deliveries.set_outcome(next(iter(producer.open)), MODIFIED_FAILED)
    producer.connection.client.mark_dirty()
    rig.run()
    consumer.link.grant(10)
    rig.run()
    assert consumer.messages == [b"1", b"2"]


@pytest.mark.parametrize("how", ["let down", "aborted"])
def test_a_barrier_right_behind_what_nobody_gets_is_answered_and_shown_to_nobody(rig: Rig, how: str):
    group = rig.anycast()
    consumer, producer = rig.consumer(group), rig.producer(group, is_circuit=True)
    if how == "aborted":
        half = producer.begin(b"1")
        rig.run()
        producer.link.abort(half)
    else:
        producer.begin(b"1")
        producer.link.finish()
        let_down(producer, b"1")
    barrier = producer.link.start(BARRIER_TAG)
    producer.link.finish()
    rig.run()
    assert consumer.messages == []
    assert deliveries.remote_outcome(barrier) == ACCEPTED


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


def test_what_is_half_on_its_way_there_is_aborted(rig: Rig):
    group = rig.anycast()
    circuit = rig.consumer(group, cost=FAR, max_frame_bytes=512, window_frames=4)
    producer = rig.producer(group)
    circuit.connection.is_stalled = True
    producer.send(bytes(10_000))
    rig.run()
    assert circuit.taker.unsettled_count == 1
    circuit.connection.client.receive(circuit.connection.router.output())
    rig.cut(producer.connection)
    circuit.connection.is_stalled = False
    rig.advance(1)
    assert (circuit.messages, circuit.aborted) == ([], 1)
    assert circuit.taker.credit == circuit.link.credit


def test_a_relay_grants_again_what_it_dropped_took(rig: Rig):
    producer, incoming = rig.incoming()
    consumer, outgoing = rig.outgoing()
    Relay(lambda *_: None, lambda _: None, rig.recorder, is_transit=True).stitch(incoming, outgoing)
    consumer.link.grant(1)
    rig.run()
    producer.begin(b"1")
    producer.link.finish()
    let_down(producer, b"1")
    rig.run()
    assert consumer.messages == []
    assert producer.link.credit == 1


def test_what_a_client_calls_modified_is_not_let_down(rig: Rig):
    group = rig.anycast()
    circuit = rig.consumer(group, cost=FAR)
    producer = rig.producer(group, max_message_bytes=ANY_SIZE)
    producer.send(b"1")
    rig.run()
    let_down(producer, b"1")
    producer.connection.client.mark_dirty()
    rig.run()
    (delivery,) = circuit.held
    assert deliveries.is_settled(delivery)
    assert deliveries.remote_outcome(delivery) is None


def circuits_of(rig: Rig, group: Any, connection: Connection, count: int) -> list[Producer]:
    producers = []
    for _ in range(count):
        producer, link = rig.incoming(connection)
        producer.inlet = Inlet(link, group, 10, is_circuit=True)
        group.add_inlet(producer.inlet)
        rig.run()
        producers.append(producer)
    return producers


def test_all_circuits_of_a_connection_are_lost_at_once(rig: Rig):
    group = rig.anycast()
    consumer, connection = rig.consumer(group, credit=2), rig.connect()
    large, small = circuits_of(rig, group, connection, 2)
    large.begin(bytes(70_000))
    rig.run()
    small.send(b"waits behind it")
    rig.run()
    rig.cut(connection)
    assert (consumer.messages, consumer.aborted) == ([], 1)


def test_what_was_given_back_is_nobodys_when_all_circuits_of_its_connection_are_lost(rig: Rig):
    group = rig.anycast()
    first, second, connection = rig.consumer(group), rig.consumer(group), rig.connect()
    large, small = circuits_of(rig, group, connection, 2)
    small.send(b"1")
    rig.run()
    holder, other = (first, second) if first.held else (second, first)
    large.begin(bytes(70_000))
    rig.run()
    assert other.partial
    holder.answer(RELEASED)
    rig.run()
    rig.cut(connection)
    rig.run()
    assert (other.messages, other.aborted) == ([], 1)


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
