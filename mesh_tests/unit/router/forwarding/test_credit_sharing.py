"""How is the credit of an address's takers shared among those who send there? Counts are deliveries."""

from __future__ import annotations

import random

import pytest

from mesh_tests.frames import pretended_credit
from mesh_tests.unit.router.forwarding.conftest import MakeRig
from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from router.forwarding.credit import PERIOD_S
from wire.delivery import RELEASED


def credits_of(*producers: Producer) -> list[int]:
    return [producer.link.credit for producer in producers]


def test_without_a_taker_nobody_has_credit(rig: Rig):
    group = rig.anycast()
    producer = rig.producer(group)
    assert credits_of(producer) == [0]
    rig.consumer(group, credit=20)
    assert credits_of(producer) == [10]


@pytest.mark.parametrize("how", ["detached", "cut", "ended here"])
def test_the_credit_of_a_taker_that_left_is_promised_to_nobody(rig: Rig, how: str):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=10)
    if how == "detached":
        consumer.link.detach()
    elif how == "cut":
        rig.cut(consumer.connection)
    else:
        consumer.connection.is_stalled = True
        consumer.taker.on_left(True, None)
        consumer.link.grant(10)
    rig.consumer(group, credit=3)
    assert credits_of(rig.producer(group)) == [3]


def test_nobody_gets_more_than_his_limit_or_than_the_takers_would_take(rig: Rig):
    group = rig.anycast()
    rig.consumer(group, credit=15)
    first, second = rig.producer(group, limit=10), rig.producer(group, limit=10)
    assert credits_of(first) == [10]
    assert 1 <= second.link.credit <= 5


@pytest.mark.parametrize("treatment", ["anycast", "multicast"])
def test_with_a_taker_everybody_has_a_float_of_one(rig: Rig, treatment: str):
    group = getattr(rig, treatment)()
    rig.consumer(group, credit=0)
    producers = [rig.producer(group) for _ in range(5)]
    assert credits_of(*producers) == [1] * 5


def test_the_float_comes_back_once_what_used_it_is_settled(rig: Rig):
    group = rig.anycast()
    consumer, producer = rig.consumer(group, credit=1), rig.producer(group)
    for number in range(3):
        producer.send(b"%d" % number)
        rig.run()
        consumer.answer()
        consumer.link.grant(1)
        rig.run()
        assert producer.link.credit >= 1
    assert consumer.messages == [b"0", b"1", b"2"]


def test_what_waits_is_no_more_than_the_floats(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=0)
    producers = [rig.producer(group) for _ in range(3)]
    for producer in producers:
        producer.send(*[b"x"] * producer.link.credit)
    rig.run()
    assert credits_of(*producers) == [0] * 3
    assert consumer.messages == []
    consumer.link.grant(100)
    rig.run()
    assert len(consumer.messages) == 3
    assert credits_of(*producers) == [9] * 3, "what is outstanding counts towards the limit"


def keep_busy(rig: Rig, producer: Producer, consumer: Consumer, seconds: float) -> int:
    """It sends all it may, every 10 ms, and all is settled; the most credit that it ever had."""
    most, end = 0, rig.timers.now + seconds
    while rig.timers.now < end:
        most = max(most, producer.link.credit)
        producer.send(*[b"x"] * producer.link.credit)
        rig.run()
        consumer.link.grant(len(consumer.held))
        consumer.answer()
        rig.advance(0.01)
    return most


def test_credit_that_an_idle_producer_holds_goes_to_the_busy_one_within_100_ms(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=10)
    idle, busy = rig.producer(group), rig.producer(group)
    assert credits_of(idle, busy) == [10, 1]
    keep_busy(rig, busy, consumer, 2 * PERIOD_S + 0.01)
    assert idle.link.credit == 1
    assert keep_busy(rig, busy, consumer, PERIOD_S) >= 8


def test_the_idle_one_is_served_again_when_it_sends(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=10)
    idle, busy = rig.producer(group), rig.producer(group)
    keep_busy(rig, busy, consumer, 1.0)
    assert idle.link.credit == 1
    assert keep_busy(rig, idle, consumer, 1.0) >= 8, "and the other one is idle now"


def test_credit_of_an_idle_producer_is_left_to_it_while_nobody_else_is_short(rig: Rig):
    group = rig.anycast()
    rig.consumer(group, credit=100)
    first, second = rig.producer(group), rig.producer(group)
    rig.advance(10 * PERIOD_S)
    assert credits_of(first, second) == [10, 10]
    assert rig.timers.next_deadline() is None, "nothing to look after"


def test_busy_producers_share_what_is_scarce_evenly(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=4)
    producers = [rig.producer(group) for _ in range(4)]
    sent = dict.fromkeys(producers, 0)
    for _ in range(200):
        for producer in producers:
            while producer.link.credit > 0:
                producer.send(b"x")
                sent[producer] += 1
        rig.advance(0.01)
        consumer.link.grant(len(consumer.held))
        consumer.answer()
        rig.run()
    assert min(sent.values()) > 100
    assert max(sent.values()) < 2 * min(sent.values())


def test_when_the_last_taker_leaves_all_credit_is_taken_back(rig: Rig):
    group = rig.anycast()
    consumer, producer = rig.consumer(group), rig.producer(group)
    consumer.link.close()
    rig.run()
    assert credits_of(producer) == [0]
    rig.consumer(group)
    assert credits_of(producer) == [10]


def test_what_crosses_that_is_released_when_nobody_came_in_time(make_rig: MakeRig):
    rig = make_rig(path_wait_s=2.0)
    group = rig.anycast()
    consumer, producer = rig.consumer(group), rig.producer(group)
    consumer.link.close()
    producer.send(b"1", b"2")
    rig.run()
    rig.advance(1.9)
    assert producer.outcomes == []
    rig.advance(0.2)
    assert producer.outcomes == [(b"1", RELEASED), (b"2", RELEASED)]


def test_what_crosses_a_reduction_of_credit_is_no_offence(rig: Rig):
    group = rig.anycast()
    consumer, producer = rig.consumer(group), rig.producer(group, max_message_bytes=0)
    producer.send(*[b"x"] * producer.link.credit)
    producer.inlet.link.set_credit(0)
    rig.run()
    assert rig.offences == []
    assert len(consumer.messages) == 10


def test_a_producer_that_starts_more_than_it_may_loses_its_link(rig: Rig):
    group = rig.anycast()
    rig.consumer(group, credit=2)
    producer = rig.producer(group, max_message_bytes=0)
    producer.connection.client.receive(pretended_credit())
    producer.send(*[b"x"] * 5)
    rig.run()
    assert [error.condition for error in rig.offences] == ["amqp:link:transfer-limit-exceeded"]
    assert producer.error.condition == "amqp:link:transfer-limit-exceeded"


def test_a_message_larger_than_allowed_ends_its_link_before_its_end_reached_anybody(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group)
    producer = rig.producer(group, max_message_bytes=100_000)
    producer.send(bytes(100_000))
    rig.run()
    producer.send(bytes(100_001))
    rig.run()
    assert [error.condition for error in rig.offences] == ["amqp:link:message-size-exceeded"]
    assert producer.error.condition == "amqp:link:message-size-exceeded"
    assert [len(message) for message in consumer.messages] == [100_000]


def test_what_waits_counts_in_what_is_left_of_a_producers_credit(rig: Rig):
    group = rig.anycast()
    consumer, producer = rig.consumer(group, credit=1000), rig.producer(group, 1000)
    while producer.link.credit < 1000:
        rig.advance(0.1)
    producer.send(bytes(200_000), *[b"x"] * 30)
    rig.run()
    inlet = producer.inlet
    assert producer.link.credit + inlet.link.queued == inlet.promised < 1000, "fewer of large messages"
    consumer.answer()
    rig.run()
    assert producer.link.credit == inlet.promised < 1000


def send_at_random(chance: random.Random, producers: list[Producer], consumers: list[Consumer]) -> None:
    producer, consumer = chance.choice(producers), chance.choice(consumers)
    producer.send(*[b"x"] * chance.randint(0, max(0, producer.link.credit)))
    consumer.answer(count=chance.randint(0, 5))
    consumer.link.grant(chance.choice((0, 0, 1, 5)))


@pytest.mark.parametrize("seed", range(20))
def test_in_any_life_no_promise_exceeds_its_limit_and_nobody_starves(rig: Rig, seed: int):
    chance = random.Random(seed)
    group = rig.anycast()
    consumers = [rig.consumer(group, chance.randint(0, 5)) for _ in range(2)]
    producers = [rig.producer(group, chance.choice((1, 3, 10))) for _ in range(4)]
    for _ in range(100):
        send_at_random(chance, producers, consumers)
        rig.advance(chance.choice((0, 0.01, 0.1)))
        for producer in producers:
            inlet = producer.inlet
            assert inlet.promised <= max(1, inlet.limit - inlet.unsettled_count)
            assert producer.link.credit + inlet.link.queued == inlet.promised
    for _ in range(30):
        for consumer in consumers:
            consumer.link.grant(10)
            consumer.answer()
        rig.advance(0.1)
    assert all(producer.link.credit > 0 for producer in producers)
    assert all(not producer.open for producer in producers)
