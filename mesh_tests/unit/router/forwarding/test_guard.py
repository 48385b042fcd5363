"""How long is a message watched that a client began and does not go on with?"""

from __future__ import annotations

from mesh_tests.unit.router.forwarding.rig import Producer, Rig
from router.forwarding.ends import Inlet
from router.forwarding.guard import Guard
from router.timers import RetryDelay

STALL_S = 10.0


def half_a_message(rig: Rig) -> tuple[Producer, Inlet]:
    group = rig.anycast()
    rig.consumer(group)
    producer, link = rig.incoming()
    guard = Guard(link, 0, rig.offences.append, RetryDelay(rig.timers, STALL_S))
    producer.inlet = Inlet(link, group, 10, guard=guard)
    group.add_inlet(producer.inlet)
    rig.run()
    producer.begin(bytes(1000))
    rig.run()
    return producer, producer.inlet


def test_a_message_that_stands_still_for_the_stall_timeout_ends_its_link(rig: Rig):
    producer, _ = half_a_message(rig)
    rig.advance(0.9 * STALL_S)
    assert producer.error is None
    rig.advance(0.2 * STALL_S)
    assert producer.error.condition == "amqp:link:detach-forced"
    assert [offence.condition for offence in rig.offences] == ["amqp:link:detach-forced"]


def test_a_link_that_the_router_ended_is_watched_no_more_though_its_client_does_not_answer(rig: Rig):
    producer, inlet = half_a_message(rig)
    producer.connection.is_stalled = True
    inlet.link.close()
    rig.advance(0.3 * STALL_S)
    assert rig.timers.next_deadline() is None
    producer.connection.is_stalled = False
