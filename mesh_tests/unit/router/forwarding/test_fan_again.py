"""What nobody got of a multicast: which router keeps it, and who gets it then? Decision 0026."""

from __future__ import annotations

import pytest

from mesh_tests.outcomes import told
from mesh_tests.unit.router.forwarding.conftest import MakeRig
from mesh_tests.unit.router.forwarding.rig import Rig, one_to
from router.forwarding.words import UNWRITTEN
from wire.delivery import ACCEPTED, RELEASED

LARGE = bytes(300_000)


def test_it_is_kept_until_all_have_settled_unless_it_is_settled_or_large_or_comes_over_a_circuit(rig: Rig):
    producer, consumers = one_to(rig, 2)
    circuit = rig.producer(consumers[0].taker.group, is_circuit=True)
    producer.send(bytes(1000), bytes(500))
    producer.send(b"1", settled=True)
    producer.send(LARGE)
    circuit.send(b"2")
    rig.run()
    assert rig.copies.used_bytes == 1500
    consumers[0].answer()
    consumers[1].answer(count=1)
    rig.run()
    assert rig.copies.used_bytes == 500
    consumers[1].answer()
    rig.run()
    assert rig.copies.used_bytes == 0


def test_bytes_that_nobody_got_go_to_who_comes_next_in_order(rig: Rig):
    group = rig.multicast()
    lost = [rig.consumer(group) for _ in range(2)]
    producer = rig.producer(group)
    for consumer in lost:
        consumer.connection.is_stalled = True
    producer.send(b"1", b"2", b"3")
    rig.run()
    for consumer in lost:
        rig.cut(consumer.connection)
    assert producer.outcomes == []
    assert rig.copies.used_bytes == 3
    consumer = rig.consumer(group)
    rig.run()
    assert consumer.messages == [b"1", b"2", b"3"]
    consumer.answer()
    rig.run()
    assert producer.outcomes == [(b"1", ACCEPTED), (b"2", ACCEPTED), (b"3", ACCEPTED)]
    assert rig.copies.used_bytes == 0


def test_what_one_of_them_got_is_not_sent_again(rig: Rig):
    producer, (taken, lost) = one_to(rig, 2)
    lost.connection.is_stalled = True
    producer.send(b"1")
    rig.run()
    rig.cut(lost.connection)
    rig.consumer(taken.taker.group)
    taken.answer(RELEASED)
    rig.run()
    assert [told(outcome) for _, outcome in producer.outcomes] == [told(RELEASED)]
    assert taken.messages == [b"1"]
    assert rig.copies.used_bytes == 0


def test_what_nobody_got_is_released_when_there_is_no_room_to_keep_it(make_rig: MakeRig):
    rig = make_rig(copies_bytes=1)
    producer, (consumer,) = one_to(rig, 1)
    consumer.connection.is_stalled = True
    producer.send(b"12")
    rig.run()
    rig.cut(consumer.connection)
    assert [told(outcome) for _, outcome in producer.outcomes] == [told(RELEASED)]


def test_a_producer_that_is_lost_leaves_nothing_of_what_came_back(rig: Rig):
    producer, (consumer,) = one_to(rig, 1)
    consumer.connection.is_stalled = True
    producer.send(b"1", b"2")
    rig.run()
    rig.cut(consumer.connection)
    assert rig.copies.used_bytes == 2
    rig.cut(producer.connection)
    assert rig.copies.used_bytes == 0


@pytest.mark.parametrize("is_branch", [True, False], ids=["a branch", "a consumer"])
def test_the_word_of_routers_is_heard_of_routers_only(rig: Rig, is_branch: bool):
    group = rig.multicast()
    first = rig.consumer(group, cost=int(is_branch))
    producer = rig.producer(group)
    producer.send(b"1")
    rig.run()
    first.answer(UNWRITTEN)
    rig.run()
    assert first.taker.is_spent == is_branch
    assert bool(producer.outcomes) != is_branch


def test_a_branch_that_gave_back_gets_nothing_more_and_is_waited_for(rig: Rig):
    group = rig.multicast()
    branch, here = rig.consumer(group, cost=1), rig.consumer(group)
    producer = rig.producer(group)
    producer.send(b"1")
    rig.run()
    branch.answer(UNWRITTEN)
    here.answer()
    rig.run()
    assert producer.outcomes == [(b"1", ACCEPTED)]
    producer.send(b"2")
    rig.run()
    branch.link.close()
    rig.run()
    assert (branch.messages, here.messages) == ([b"1"], [b"1"])
    group.end_change(True)
    rig.run()
    assert here.messages == [b"1", b"2"]


@pytest.mark.parametrize("is_left_out", [True, False])
def test_a_router_says_that_it_gave_a_copy_to_nobody(make_rig: MakeRig, is_left_out: bool):
    """But not of one that is left out because it stalls."""
    rig = make_rig(stall_timeout_s=5.0)
    group = rig.multicast()
    circuit, other = (rig.producer(group, is_circuit=True) for _ in range(2))
    rig.consumer(group, cost=1, upstream=(circuit if is_left_out else other).inlet, credit=0)
    rig.advance(1.0)
    circuit.send(b"1")
    rig.run()
    rig.advance(11.0)
    assert [told(outcome) for _, outcome in circuit.outcomes] == [told(RELEASED if is_left_out else UNWRITTEN)]
