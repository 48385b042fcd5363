"""Does fresh credit of the takers reach the senders that were short of it, and cost nothing for all others?"""

from __future__ import annotations

import random
import time

import pytest

from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from router.forwarding.credit import PERIOD_S
from router.forwarding.ends import Inlet, Taker

FEW = 8
"""So many senders at most are all offered fresh credit, whatever number of them has no use for it."""


def free_credit(consumers: list[Consumer], producers: list[Producer]) -> int:
    """Credit of all takers that is promised to nobody."""
    return sum(each.taker.credit for each in consumers) - sum(each.inlet.promised for each in producers)


def wanted(producer: Producer) -> int:
    inlet = producer.inlet
    return inlet.limit - inlet.promised - inlet.unsettled_count


@pytest.mark.parametrize("seed", range(40))
def test_fresh_credit_is_shared_by_the_rule_among_those_who_were_short_of_it(rig: Rig, seed: int):
    chance = random.Random(seed)
    group = rig.anycast()
    consumers = [rig.consumer(group, chance.randint(0, 4)) for _ in range(2)]
    producers = [rig.producer(group, chance.choice((1, 5, 30, 200))) for _ in range(chance.randint(2, FEW))]
    for _ in range(30):
        sender = chance.choice(producers)
        sender.send(*[b"x"] * chance.randint(0, min(max(0, sender.link.credit), free_slots(consumers))))
        chance.choice(consumers).answer(count=chance.randint(0, 5))
        rig.run()
        free = free_credit(consumers, producers)
        short = [each for each in producers if wanted(each) > max(free, 0)]
        before = {each: each.inlet.promised for each in producers}
        chance.choice(consumers).link.grant(chance.choice((1, 3, 20, 300)))
        rig.run()
        free = free_credit(consumers, producers)
        for each in producers:
            promised = each.inlet.promised
            assert promised == before[each] or promised >= max(1, 2 * before[each]), "a flow is worth its frame"
            assert promised <= max(1, each.inlet.limit - each.inlet.unsettled_count)
        for each in short:
            share = max(1, min(free // len(producers), wanted(each))) if wanted(each) > free else wanted(each)
            is_refused = free <= 0 or wanted(each) <= 0 or share < each.inlet.promised
            assert is_refused, f"{free} free, and a sender with {each.inlet.promised} wants {wanted(each)} more"


def free_slots(consumers: list[Consumer]) -> int:
    """Deliveries that the takers accept at once, so that none waits."""
    return sum(max(0, each.taker.credit) for each in consumers)


def test_when_credit_comes_back_all_starved_senders_go_on(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=0)
    producers = [rig.producer(group) for _ in range(40)]
    for producer in producers:
        producer.send(b"x")
    rig.run()
    assert [producer.link.credit for producer in producers] == [0] * 40
    consumer.link.grant(60)
    rig.run()
    assert len(consumer.messages) == 40
    assert all(producer.link.credit >= 1 for producer in producers)


def test_senders_that_are_short_of_credit_are_offered_it_in_turn(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=0)
    producers = [rig.producer(group, limit=4) for _ in range(3 * FEW)]
    seen: set[int] = set()
    for _ in range(3 * len(producers)):
        before = [producer.link.credit for producer in producers]
        consumer.link.grant(2)
        rig.run()
        seen |= {number for number, producer in enumerate(producers) if producer.link.credit > before[number]}
    assert seen == set(range(len(producers)))


def test_a_period_offers_what_is_left_to_all_that_are_short(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=40)
    idle = [rig.producer(group) for _ in range(30)]
    busy = rig.producer(group)
    end = rig.timers.now + 4 * PERIOD_S
    most = 0
    while rig.timers.now < end:
        most = max(most, busy.link.credit)
        busy.send(*[b"x"] * busy.link.credit)
        rig.run()
        consumer.link.grant(len(consumer.held))
        consumer.answer()
        rig.advance(0.01)
    assert [producer.link.credit for producer in idle] == [1] * 30
    assert most >= 8, "floats of idle senders count as promised, but the rest went to the busy one"


def test_a_circuit_gets_credit_with_the_first_consumer_here_whatever_other_takers_there_are(rig: Rig):
    group = rig.anycast()
    for _ in range(3):
        rig.consumer(group, credit=10, cost=1)
    circuit = rig.producer(group, is_circuit=True)
    assert circuit.link.credit == 0
    rig.consumer(group, credit=0)
    assert circuit.link.credit == 1


@pytest.mark.parametrize("treatment", ["anycast", "multicast"])
def test_an_edge_router_gets_credit_with_the_first_taker_that_does_not_lead_back(rig: Rig, treatment: str):
    group = getattr(rig, treatment)()
    for _ in range(3):
        consumer, link = rig.outgoing()
        consumer.taker = Taker(link, group, 1)
        consumer.taker.edge = 7
        group.add_taker(consumer.taker)
        consumer.link.grant(10)
    producer, link = rig.incoming()
    inlet = Inlet(link, group, 10)
    inlet.is_edge, inlet.shuns = True, 7
    group.add_inlet(inlet)
    rig.run()
    assert producer.link.credit == 0
    rig.consumer(group, credit=0)
    assert producer.link.credit >= 1


def settle_one(rig: Rig, sender: Producer, consumers: list[Consumer]) -> None:
    """Carry a message to a consumer, and what the consumer says of it, and its new credit, back."""
    sender.send(b"x")
    rig.run()
    (consumer,) = [each for each in consumers if each.held]
    consumer.answer()
    consumer.link.grant(1)
    rig.run()


@pytest.mark.parametrize("treatment", ["anycast", "multicast"])
@pytest.mark.parametrize(("senders", "credit", "limit"), [(9, 100, 1000), (40, 90, 10), (40, 150, 1000)])
def test_a_message_now_and_then_is_one_write_to_its_consumer_and_one_to_its_sender(
    rig: Rig, treatment: str, senders: int, credit: int, limit: int
):
    group = getattr(rig, treatment)()
    consumers = [rig.consumer(group, credit)]
    producers = [rig.producer(group, limit) for _ in range(senders)]
    for producer in 2 * producers:  # the first sender had all the credit at first
        settle_one(rig, producer, consumers)
        rig.advance(3 * PERIOD_S)
    (receiving,) = [each.connection for each in consumers]
    sending = [each.connection for each in producers]
    before = receiving.writes, [each.writes for each in sending]
    for producer in producers:
        settle_one(rig, producer, consumers)
        rig.advance(3 * PERIOD_S)
    assert receiving.writes - before[0] == senders
    assert [each.writes - writes for each, writes in zip(sending, before[1], strict=True)] == [1] * senders


def test_one_stream_among_many_idle_senders_gets_the_credit_that_they_do_not_need(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=1000)
    idle = [rig.producer(group, 1000) for _ in range(100)]
    for producer in idle:
        settle_one(rig, producer, [consumer])
    stream = rig.producer(group, 1000)
    most = 0
    for _ in range(40):
        most = max(most, stream.link.credit)
        stream.send(*[b"x"] * stream.link.credit)
        rig.run()
        consumer.link.grant(len(consumer.held))
        consumer.answer()
        rig.advance(0.01)
    assert most > 500
    assert sum(each.link.credit for each in idle) <= 250, "a quarter of the credit"


@pytest.mark.parametrize("seed", range(20))
def test_many_senders_are_soon_promised_no_more_than_the_credit_and_a_float_each(rig: Rig, seed: int):
    chance = random.Random(seed)
    group = rig.anycast()
    consumers = [rig.consumer(group, chance.randint(0, 60)) for _ in range(2)]
    producers = [rig.producer(group, chance.choice((1, 5, 30, 1000))) for _ in range(chance.randint(FEW + 1, 40))]
    for number in range(60):
        sender = chance.choice(producers)
        most = max(0, sender.link.credit)
        sender.send(*[b"x"] * min(most, chance.choice((0, 1, 1, most))))
        chance.choice(consumers).answer(count=chance.randint(0, 9))
        chance.choice(consumers).link.grant(chance.choice((0, 0, 1, 3, 40)))
        rig.advance(chance.choice((0, 0, 0.01, 0.1)))
        if number % 5 == 0:
            rig.advance(3 * PERIOD_S)
            assert free_credit(consumers, producers) >= -len(producers)
        for each in producers:
            assert each.inlet.promised <= max(1, each.inlet.limit - each.inlet.unsettled_count)
            assert each.link.credit + each.inlet.link.queued == each.inlet.promised
    for _ in range(30):
        for consumer in consumers:
            consumer.answer()
            consumer.link.grant(10)
        rig.advance(0.1)
    assert all(producer.link.credit > 0 and not producer.open for producer in producers)


def seconds_of_flows(rig: Rig, idle: int) -> float:
    """CPU time of flows of a consumer at an address where ``idle`` senders hold their float, in the least of 5 runs."""
    group = rig.anycast()
    consumer = rig.consumer(group, credit=0)
    connections = [rig.connect() for _ in range(1 + idle // 200)]
    for number in range(idle):
        _, link = rig.incoming(connections[number % len(connections)])
        group.add_inlet(Inlet(link, group, 1000))
    rig.run()
    rig.advance(3 * PERIOD_S)
    taken = []
    for _ in range(5):
        before = time.thread_time()
        for _ in range(100):
            consumer.link.grant(1)
            rig.carry_to_router(consumer)
        taken.append(time.thread_time() - before)
    return min(taken)


def test_a_flow_of_a_consumer_costs_the_same_with_thousands_of_idle_senders(rig: Rig):
    few, many = seconds_of_flows(rig, 10), seconds_of_flows(rig, 2000)
    assert many < 3 * few, f"{many / few:.1f} times as much with 2,000 idle senders as with 10"
