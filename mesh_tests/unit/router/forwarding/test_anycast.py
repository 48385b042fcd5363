"""To whom does a delivery go, among those that could take it?"""

from __future__ import annotations

from mesh_tests.unit.router.forwarding.rig import Rig
from wire.delivery import ACCEPTED, RELEASED


def test_balanced_is_by_what_is_outstanding(rig: Rig):
    group = rig.anycast()
    busy, producer = rig.consumer(group), rig.producer(group)
    producer.send(b"1", b"2", b"3")
    rig.run()
    idle = rig.consumer(group)
    producer.send(b"4", b"5", b"6")
    rig.run()
    assert (len(busy.messages), idle.messages) == (3, [b"4", b"5", b"6"])


def test_of_equals_each_has_its_turn(rig: Rig):
    group = rig.anycast()
    consumers, producer = [rig.consumer(group) for _ in range(3)], rig.producer(group)
    for number in range(9):
        producer.send(b"%d" % number)
        rig.run()
        for consumer in consumers:
            consumer.answer()
        rig.run()
    assert [consumer.messages for consumer in consumers] == [
        [b"0", b"3", b"6"],
        [b"1", b"4", b"7"],
        [b"2", b"5", b"8"],
    ]


def test_a_path_costs_as_much_as_so_many_outstanding_deliveries(rig: Rig):
    group = rig.anycast()
    near, far, producer = rig.consumer(group), rig.consumer(group, cost=3), rig.producer(group)
    producer.send(b"1", b"2", b"3")
    rig.run()
    assert far.messages == []
    producer.send(b"4", b"5", b"6")
    rig.run()
    assert (near.messages, far.messages) == ([b"1", b"2", b"3", b"5"], [b"4", b"6"])


def test_closest_that_spills_is_by_cost_alone(rig: Rig):
    group = rig.anycast(closest=True, spills=True)
    far, near = rig.consumer(group, cost=2), rig.consumer(group, 4, cost=1)
    producer = rig.producer(group)
    producer.send(*[b"x"] * 6)
    rig.run()
    assert (len(near.messages), len(far.messages)) == (4, 2), "the far one only when the near one has no credit"


def test_closest_is_the_nearest_alone_while_that_is_there(rig: Rig):
    group = rig.anycast(closest=True)
    far, near = rig.consumer(group, cost=2), rig.consumer(group, 4, cost=1)
    producer = rig.producer(group)
    producer.send(*[b"x"] * 6)
    rig.run()
    assert (len(near.messages), len(far.messages)) == (4, 0)
    rig.cut(near.connection)
    assert len(far.messages) == 2


def test_of_equally_close_ones_each_has_its_turn(rig: Rig):
    group = rig.anycast(closest=True)
    consumers, producer = [rig.consumer(group, cost=1) for _ in range(2)], rig.producer(group)
    producer.send(*[b"x"] * 6)
    rig.run()
    assert [len(consumer.messages) for consumer in consumers] == [3, 3]


def test_one_without_credit_or_about_to_close_is_passed_over(rig: Rig):
    group = rig.anycast()
    without, closing, taking = rig.consumer(group, 0), rig.consumer(group), rig.consumer(group)
    closing.taker.is_closing = True
    producer = rig.producer(group)
    producer.send(*[b"x"] * 5)
    rig.run()
    assert (without.messages, closing.messages, len(taking.messages)) == ([], [], 5)


def test_what_came_over_a_circuit_goes_to_consumers_here_only(rig: Rig):
    group = rig.anycast()
    circuit, here = rig.producer(group, is_circuit=True), rig.consumer(group, 1)
    elsewhere = rig.consumer(group, cost=1)
    rig.run()
    circuit.send(b"1")
    circuit.send(b"2")
    rig.run()
    assert (here.messages, elsewhere.messages) == ([b"1"], [])
    here.link.grant(1)
    rig.run()
    assert here.messages == [b"1", b"2"]


def test_what_came_over_a_circuit_and_was_given_back_is_its_ingress_affair(rig: Rig):
    group = rig.anycast()
    circuit, first = rig.producer(group, is_circuit=True), rig.consumer(group)
    circuit.send(b"1")
    rig.run()
    other = rig.consumer(group)
    first.answer(RELEASED)
    rig.run()
    assert other.messages == []
    assert circuit.outcomes == [(b"1", RELEASED)]


def test_those_that_wait_go_on_in_turn(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=0)
    producers = [rig.producer(group) for _ in range(3)]
    for producer, name in zip(producers, (b"a", b"b", b"c"), strict=True):
        producer.send(name)  # on its float
    rig.run()
    assert consumer.messages == []
    consumer.link.grant(3)
    rig.run()
    assert sorted(consumer.messages) == [b"a", b"b", b"c"]


def test_a_large_message_of_one_stops_no_other(rig: Rig):
    group = rig.anycast()
    first, second = rig.consumer(group), rig.consumer(group)
    slow, quick = rig.producer(group), rig.producer(group)
    slow.begin(bytes(100_000))
    rig.run()
    quick.send(b"1", b"2")
    rig.run()
    assert sorted(first.messages + second.messages) == [b"1", b"2"]


def test_a_small_message_that_is_not_complete_takes_nobodys_turn(rig: Rig):
    group = rig.anycast()
    consumer, slow, quick = rig.consumer(group), rig.producer(group), rig.producer(group)
    slow.begin(b"beginning")
    rig.run()
    quick.send(b"1")
    rig.run()
    assert consumer.messages == [b"1"]
    slow.link.finish()
    rig.run()
    assert consumer.messages == [b"1", b"beginning"]


def test_what_found_another_taker_in_time_is_not_given_back_when_that_time_is_over(rig: Rig):
    group = rig.anycast()
    first, second = rig.consumer(group), rig.consumer(group, credit=0)
    circuit = rig.producer(group, is_circuit=True)
    circuit.send(b"1")
    rig.run()
    first.answer(RELEASED)
    rig.run()
    second.link.grant(1)
    rig.run()
    assert second.messages == [b"1"]
    rig.advance(2 * rig.settings.path_wait_s)
    assert (circuit.outcomes, group.snapshot().released) == ([], 0)
    second.answer()
    rig.run()
    assert circuit.outcomes == [(b"1", ACCEPTED)]
