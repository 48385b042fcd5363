"""One delivery on its way to one taker: what is kept of it, and what its producer is told whoever is lost."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from mesh_tests.outcomes import EVERY_KIND, outcome_id, told
from mesh_tests.unit.router.forwarding.conftest import MakeRig
from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome
from wire.link import RECEIVE_FIRST, SEND_SETTLED

LARGE = bytes(300_000)


def outcomes_of(producer: Producer) -> list[Any]:
    return [told(outcome) for _, outcome in producer.outcomes]


def one_to_one(rig: Rig) -> tuple[Producer, Consumer]:
    group = rig.anycast()
    consumer = rig.consumer(group)
    return rig.producer(group), consumer


# What passes
@pytest.mark.parametrize("outcome", EVERY_KIND, ids=outcome_id)
def test_the_outcome_of_the_taker_is_the_producers(rig: Rig, outcome: Outcome):
    producer, consumer = one_to_one(rig)
    producer.send(b"1")
    rig.run()
    assert consumer.messages == [b"1"]
    assert producer.outcomes == []
    consumer.answer(outcome)
    rig.run()
    assert outcomes_of(producer) == [told(outcome)]


def test_a_message_of_any_size_passes_byte_for_byte(rig: Rig):
    producer, consumer = one_to_one(rig)
    messages = [b"", b"x", bytes(range(256)) * 256, b"y" * 65537, bytes(range(251)) * 4000]
    for message in messages:
        producer.send(message)
        rig.run()
        consumer.answer()
        rig.run()
    assert consumer.messages == messages
    assert outcomes_of(producer) == [told(ACCEPTED)] * len(messages)


def test_what_was_sent_settled_is_settled_at_the_taker(rig: Rig):
    producer, consumer = one_to_one(rig)
    producer.send(b"1", settled=True)
    rig.run()
    assert consumer.messages == [b"1"]
    assert consumer.held == []
    assert producer.inlet.unsettled_count == consumer.taker.unsettled_count == 0


def test_a_taker_that_wants_all_settled_is_an_acceptance(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, modes=(SEND_SETTLED, RECEIVE_FIRST))
    producer = rig.producer(group)
    producer.send(b"1")
    rig.run()
    assert consumer.held == []
    assert outcomes_of(producer) == [told(ACCEPTED)]


# What is kept
def test_a_copy_is_kept_until_the_outcome(rig: Rig):
    producer, consumer = one_to_one(rig)
    producer.send(bytes(1000), bytes(500))
    rig.run()
    assert rig.copies.used_bytes == 1500
    consumer.answer(count=1)
    rig.run()
    assert rig.copies.used_bytes == 500
    consumer.answer(MODIFIED_FAILED)
    rig.run()
    assert rig.copies.used_bytes == 0


def test_of_settled_and_of_large_deliveries_and_of_what_circuits_bring_nothing_is_kept(rig: Rig):
    producer, consumer = one_to_one(rig)
    circuit = rig.producer(consumer.taker.group, is_circuit=True)
    producer.send(b"1", settled=True)
    producer.send(LARGE)
    circuit.send(b"2")
    rig.run()
    assert len(consumer.messages) == 3
    assert rig.copies.used_bytes == 0


def test_of_what_a_circuit_brings_a_copy_is_kept_while_there_are_two_takers_here(rig: Rig):
    group = rig.anycast()
    consumers = [rig.consumer(group, credit=1), rig.consumer(group, credit=1)]
    circuit = rig.producer(group, is_circuit=True)
    circuit.send(b"one", b"two")
    rig.run()
    assert rig.copies.used_bytes == 6
    for consumer in consumers:
        consumer.answer()
    rig.run()
    assert rig.copies.used_bytes == 0
    consumers[0].link.close()
    rig.run()
    consumers[1].link.grant(1)
    circuit.send(b"three")
    rig.run()
    assert len(consumers[1].messages) == 2
    assert rig.copies.used_bytes == 0


def test_what_one_taker_gives_back_another_gets(rig: Rig):
    group = rig.anycast()
    first, producer = rig.consumer(group), rig.producer(group)
    producer.send(b"1")
    rig.run()
    second = rig.consumer(group)
    first.answer(RELEASED)
    rig.run()
    assert second.messages == [b"1"]
    assert producer.outcomes == []
    second.answer()
    rig.run()
    assert outcomes_of(producer) == [told(ACCEPTED)]
    assert first.taker.unsettled_count == second.taker.unsettled_count == 0


def test_what_every_taker_gives_back_is_released_and_none_sees_it_twice(rig: Rig):
    group = rig.anycast()
    consumers, producer = [rig.consumer(group) for _ in range(3)], rig.producer(group)
    producer.send(b"1")
    rig.run()
    for _ in range(5):
        for consumer in consumers:
            consumer.answer(RELEASED)
        rig.run()
    assert [consumer.messages for consumer in consumers] == [[b"1"]] * 3
    assert outcomes_of(producer) == [told(RELEASED)]
    assert rig.copies.used_bytes == 0


def test_what_was_given_back_waits_for_one_who_has_not_seen_it(rig: Rig):
    group = rig.anycast()
    first, second, producer = rig.consumer(group), rig.consumer(group, credit=0), rig.producer(group)
    producer.send(b"1")
    rig.run()
    first.answer(RELEASED)
    rig.advance(1.0)
    assert producer.outcomes == []
    second.link.grant(1)
    rig.run()
    assert second.messages == [b"1"]


def test_it_waits_no_longer_than_a_path_is_waited_for(make_rig: MakeRig):
    rig = make_rig(path_wait_s=2.0)
    group = rig.anycast()
    first, second, producer = rig.consumer(group), rig.consumer(group, credit=0), rig.producer(group)
    producer.send(b"1")
    rig.run()
    first.answer(RELEASED)
    rig.run()
    rig.advance(1.9)
    assert producer.outcomes == []
    rig.advance(0.2)
    assert outcomes_of(producer) == [told(RELEASED)]
    second.link.grant(1)
    rig.run()
    assert second.messages == []


def test_without_room_for_copies_deliveries_pass_and_are_not_offered_again(make_rig: MakeRig):
    rig = make_rig(copies_bytes=1000)
    group = rig.anycast()
    first, producer = rig.consumer(group), rig.producer(group)
    producer.send(b"kept".ljust(800, b"."), b"not kept".ljust(800, b"."))
    rig.run()
    assert len(first.messages) == 2
    assert rig.copies.used_bytes == 800
    second = rig.consumer(group)
    first.answer(RELEASED)
    rig.run()
    assert second.messages == [b"kept".ljust(800, b".")]
    assert producer.outcomes == [(b"not kept".ljust(800, b"."), RELEASED)]
    second.answer()
    rig.run()
    assert rig.copies.used_bytes == 0


def test_what_there_is_no_room_to_keep_takes_no_memory_once_it_is_sent(make_rig: MakeRig):
    rig = make_rig(copies_bytes=1000)
    producer, consumer = one_to_one(rig)
    message = bytes(50_000)
    tracemalloc.start()
    try:
        for _ in range(20):
            producer.send(message)
            rig.run()
        consumer.messages.clear()
        assert tracemalloc.get_traced_memory()[0] < 10 * len(message)
    finally:
        tracemalloc.stop()


def test_the_room_of_what_is_settled_is_used_again(make_rig: MakeRig):
    rig = make_rig(copies_bytes=1000)
    producer, consumer = one_to_one(rig)
    for _ in range(10):
        producer.send(bytes(900))
        rig.run()
        assert rig.copies.used_bytes == 900
        consumer.answer()
        rig.run()


# Who is lost
def test_when_the_producer_is_lost_what_is_complete_goes_on(rig: Rig):
    producer, consumer = one_to_one(rig)
    producer.send(b"1")
    rig.run()
    rig.cut(producer.connection)
    assert consumer.messages == [b"1"]
    assert rig.copies.used_bytes == 0
    consumer.answer()
    rig.run()
    assert consumer.taker.unsettled_count == 0


def test_when_the_producer_is_lost_what_is_not_complete_is_aborted(rig: Rig):
    producer, consumer = one_to_one(rig)
    producer.begin(LARGE)
    rig.run()
    assert consumer.partial
    rig.cut(producer.connection)
    assert (consumer.messages, consumer.aborted) == ([], 1)
    assert consumer.taker.unsettled_count == 0
    assert consumer.taker.credit == consumer.taker.link.credit


def test_an_abort_passes(rig: Rig):
    producer, consumer = one_to_one(rig)
    delivery = producer.begin(LARGE)
    rig.run()
    producer.link.abort(delivery)
    producer.send(b"next")
    rig.run()
    assert (consumer.messages, consumer.aborted) == ([b"next"], 1)


def test_an_abort_before_anything_was_passed_on_is_not_seen(rig: Rig):
    producer, consumer = one_to_one(rig)
    delivery = producer.begin(b"small")
    rig.run()
    producer.link.abort(delivery)
    producer.send(b"next")
    rig.run()
    assert (consumer.messages, consumer.aborted) == ([b"next"], 0)


def test_when_the_taker_is_lost_what_was_written_is_in_doubt(rig: Rig):
    producer, consumer = one_to_one(rig)
    producer.send(b"1")
    rig.run()
    rig.cut(consumer.connection)
    assert outcomes_of(producer) == [told(MODIFIED_FAILED)]
    assert rig.copies.used_bytes == 0


def test_when_the_taker_is_lost_in_the_middle_the_rest_is_read_and_nobody_has_it(rig: Rig):
    producer, consumer = one_to_one(rig)
    producer.begin(LARGE)
    rig.run()
    rig.cut(consumer.connection)
    assert producer.outcomes == []
    producer.link.send(LARGE)
    producer.link.finish()
    rig.run()
    assert outcomes_of(producer) == [told(RELEASED)]


def test_a_message_whose_end_comes_after_everybody_gave_up_is_read_and_answered(make_rig: MakeRig):
    rig = make_rig(path_wait_s=2.0)
    producer, consumer = one_to_one(rig)
    producer.begin(LARGE)
    rig.run()
    rig.cut(consumer.connection)
    rig.advance(3.0)
    producer.link.send(LARGE)
    producer.link.finish()
    rig.advance(3.0)
    assert outcomes_of(producer) == [told(RELEASED)]


def test_when_a_taker_is_lost_with_bytes_it_never_got_another_gets_them(rig: Rig):
    group = rig.anycast()
    first, producer = rig.consumer(group), rig.producer(group)
    first.connection.is_stalled = True
    producer.send(b"1")
    rig.run()
    second = rig.consumer(group)
    first.link.close()
    rig.run()
    assert second.messages == [b"1"]
    second.answer()
    rig.run()
    assert outcomes_of(producer) == [told(ACCEPTED)]


def test_a_taker_that_wants_no_more_of_a_message_is_heard_when_that_ends(rig: Rig):
    producer, consumer = one_to_one(rig)
    producer.begin(LARGE)
    rig.run()
    consumer.held.append(consumer.link.current)
    consumer.answer(MODIFIED_FAILED)
    consumer.partial = b""
    rig.run()
    assert producer.outcomes == []
    producer.link.finish()
    producer.send(b"next")
    rig.run()
    assert outcomes_of(producer) == [told(MODIFIED_FAILED)]
    assert consumer.messages[-1:] == [b"next"]


def test_a_producer_that_settles_first_wants_no_outcome(rig: Rig):
    producer, consumer = one_to_one(rig)
    producer.send(b"1")
    rig.run()
    (delivery,) = producer.open
    producer.open.clear()
    deliveries.settle(delivery)
    rig.run()
    assert producer.inlet.unsettled_count == consumer.taker.unsettled_count == 0
    assert rig.copies.used_bytes == 0
    consumer.answer(RELEASED)
    rig.run()


def test_what_waits_for_room_goes_on_when_there_is_some(rig: Rig):
    producer, consumer = one_to_one(rig)
    consumer.connection.is_stalled = True
    producer.send(bytes(60_000), bytes(60_000), b"last")
    rig.run()
    assert producer.link.credit < 10
    consumer.connection.is_stalled = False
    rig.run()
    assert [len(message) for message in consumer.messages] == [60_000, 60_000, 4]
    consumer.answer()
    rig.run()
    assert outcomes_of(producer) == [told(ACCEPTED)] * 3
