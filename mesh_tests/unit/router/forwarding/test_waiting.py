"""Which of the senders that wait for a consumer are looked at, and when?"""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from router.forwarding.ends import Inlet
from wire.delivery import OutcomeCode

SMALL, LARGE = b"s" * 100, b"L" * 5000
SENDERS = 5


def test_senders_that_wait_get_one_credit_each_in_turn_when_credits_come_one_by_one(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=0)
    producers = [rig.producer(group) for _ in range(SENDERS)]
    for number in range(3):
        for name, producer in enumerate(producers):
            producer.send(b"%d %d" % (name, number))
            rig.run()
            if number == 0:
                continue
            consumer.link.grant(1)
            rig.run()
            consumer.answer()
            rig.run()
    while len(consumer.messages) < 3 * SENDERS:
        consumer.link.grant(1)
        rig.run()
        consumer.answer()
        rig.run()
    names = [message.split()[0] for message in consumer.messages]
    assert all(set(names[at : at + SENDERS]) == set(names) for at in range(0, 3 * SENDERS, SENDERS))
    for name in range(SENDERS):
        assert [m for m in consumer.messages if m.startswith(b"%d " % name)] == [b"%d %d" % (name, n) for n in range(3)]


def test_a_message_too_large_for_the_consumers_left_is_refused_though_none_of_them_has_credit(rig: Rig):
    group = rig.anycast()
    wide, narrow = rig.consumer(group, credit=0), rig.consumer(group, credit=0, max_message_bytes=1000)
    first, second = (rig.producer(group, max_message_bytes=100_000) for _ in range(2))
    first.send(SMALL)
    second.send(LARGE)
    rig.run()
    assert not first.outcomes
    assert not second.outcomes
    group.on_taker_left(wide.taker, True, None)
    rig.run()
    assert [outcome.kind for _, outcome in second.outcomes] == [OutcomeCode.REJECTED]
    assert not first.outcomes
    narrow.link.grant(1)
    rig.run()
    assert narrow.messages == [SMALL]


def waiting_at(rig: Rig, group: Any, consumer: Consumer, senders: int) -> list[Producer]:
    """Senders with a delivery each that waits for credit of ``consumer``, on ten connections."""
    connections = [rig.connect() for _ in range(10)]
    producers = []
    for number in range(senders):
        producer, link = rig.incoming(connections[number % len(connections)])
        producer.inlet = Inlet(link, group, 1000)
        group.add_inlet(producer.inlet)
        producers.append(producer)
    rig.run()
    for producer in producers:
        producer.send(SMALL)
    rig.run()
    assert not consumer.messages
    return producers


def seconds_of_single_credits(rig: Rig, treatment: str, senders: int) -> float:
    """CPU time of 20 flows with one credit each, for which ``senders`` deliveries wait, in the least of 5 runs."""
    group = getattr(rig, treatment)()
    consumer = rig.consumer(group, credit=0)
    waiting_at(rig, group, consumer, senders)
    taken = []
    for _ in range(5):
        before = time.thread_time()
        for _ in range(20):
            consumer.link.grant(1)
            rig.carry_to_router(consumer)
        taken.append(time.thread_time() - before)
    rig.run()
    assert len(consumer.messages) == 100
    return min(taken)


@pytest.mark.parametrize("treatment", ["anycast", "multicast"])
def test_a_credit_for_one_of_thousands_that_wait_costs_no_look_at_all_others(rig: Rig, treatment: str):
    few, many = (seconds_of_single_credits(rig, treatment, senders) for senders in (120, 2000))
    assert many < 4 * few, f"{many / few:.1f} times as much with 2,000 senders that wait as with 120"


@pytest.mark.parametrize("seed", range(20))
def test_deliveries_of_many_senders_go_on_by_priority_and_in_order_of_arrival_one_credit_at_a_time(rig: Rig, seed: int):
    chance = random.Random(seed)
    group = rig.anycast()
    consumer = rig.consumer(group, credit=0)
    line: list[tuple[int, int, bytes]] = []
    for number in range(20):
        producer, level = rig.producer(group), chance.choice((0, 4, 4, 4, 9))
        message = b"\x00Sp\xc0\x04\x02\x42\x50%c\x00Su\xa0\x04%04d" % (level, number)
        line.append((-level, number, message))
        producer.send(message)
        rig.run()
    while len(consumer.messages) < len(line):
        consumer.link.grant(chance.randint(1, 3))
        rig.run()
    assert consumer.messages == [message for _, _, message in sorted(line)]
