"""What does a group report by actions, and what at once?"""

from __future__ import annotations

from typing import Any

from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig
from router.forwarding.actions import NoTakerInTime, ReplacementUp
from router.forwarding.ends import Taker
from wire.delivery import ACCEPTED, RELEASED


def circuit(rig: Rig, group: Any) -> Taker:
    """A circuit that this router attached, and which is not in the group."""
    connection = rig.connect()
    taker = Taker(connection.router.begin().sender("circuit"), group, 1)
    taker.link.open()
    rig.run()
    return taker


def answer(rig: Rig, taker: Taker) -> None:
    connection = next(each for each in rig.connections if each.router is taker.link.endpoint)
    connection.attached.pop().accept_as_proposed()
    rig.run()


def waiting(rig: Rig, group: Any, has_queue: bool) -> Producer:
    """A producer of an address with a fallback queue, with a delivery that waited too long for a taker."""
    consumer, producer = rig.consumer(group), rig.producer(group)
    group.fall_back(False, False, has_queue)
    consumer.link.set_credit(0)
    rig.run()
    producer.send(b"1")
    consumer.link.close()
    rig.run()
    rig.actions.take_changed()
    rig.advance(group.hold_s)
    return producer


def test_a_group_is_marked_once_however_often_it_changed(rig: Rig):
    group, other = rig.anycast(), rig.multicast()
    rig.consumer(group)
    rig.producer(other)
    rig.producer(group)
    assert rig.actions.take_changed() == [group, other]
    assert rig.actions.take_changed() == []
    assert rig.actions.take() == []


def test_a_delivery_marks_no_group(rig: Rig):
    group = rig.anycast()
    consumer, producer = rig.consumer(group), rig.producer(group)
    rig.actions.take_changed()
    producer.send(b"1", b"2")
    rig.run()
    consumer.answer()
    rig.run()
    assert producer.outcomes == [(b"1", ACCEPTED), (b"2", ACCEPTED)]
    assert (rig.actions.take_changed(), rig.actions.take()) == ([], [])


def test_an_end_that_is_lost_is_told_at_once_and_marks_its_group(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group)
    rig.actions.take_changed()
    consumer.link.close()
    rig.run()
    assert [end for end, _ in rig.lost] == [consumer.taker]
    assert rig.actions.take_changed() == [group]


def test_a_circuit_beside_the_group_is_an_action_once_it_is_up(rig: Rig):
    group = rig.anycast()
    taker = circuit(rig, group)
    assert rig.actions.take() == []
    answer(rig, taker)
    assert rig.actions.take() == [ReplacementUp(group, taker)]
    assert not group.takers, "the owner decides"


def test_a_circuit_of_the_group_is_no_action_when_it_is_up(rig: Rig):
    group = rig.anycast()
    taker = circuit(rig, group)
    group.add_taker(taker)
    answer(rig, taker)
    assert rig.actions.take() == []


def test_producers_without_a_taker_in_time_wait_on_if_there_is_a_queue(rig: Rig):
    group = rig.with_fallback()
    producer = waiting(rig, group, has_queue=True)
    assert rig.actions.take() == [NoTakerInTime(group)]
    assert producer.outcomes == []


def test_producers_without_a_taker_in_time_and_without_a_queue_get_their_deliveries_back(rig: Rig):
    group = rig.with_fallback()
    producer = waiting(rig, group, has_queue=False)
    assert rig.actions.take() == [NoTakerInTime(group)]
    assert producer.outcomes == [(b"1", RELEASED)]


def test_a_branch_that_leaves_marks_its_multicast(rig: Rig):
    group = rig.multicast()
    branch: Consumer = rig.consumer(group, cost=1)
    rig.producer(group)
    rig.actions.take_changed()
    branch.link.close()
    rig.run()
    assert rig.actions.take_changed() == [group]
