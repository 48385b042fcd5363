"""What does a broker say of the time to live, where its queue has a limit of its own?"""

import pytest

from broker.links.incoming import TEMPORARY_TTL_S
from mesh_tests.unit.broker.rig import Rig


def test_a_temporary_queue_keeps_for_less_and_tells_what_is_left_of_the_messages_own_time(rig: Rig) -> None:
    client = rig.client()
    consumer = client.consumer(None, credit=0, is_dynamic=True)
    producer = client.producer(consumer.link.remote_source.address)
    producer.send("early", ttl_s=100.0)
    rig.advance(5)
    consumer.link.grant(1)
    rig.run()
    assert consumer.received[0].message.ttl_s == pytest.approx(95, abs=0.1)
    producer.send("late", ttl_s=100.0)
    rig.advance(TEMPORARY_TTL_S + 1)
    consumer.link.grant(1)
    rig.run()
    assert consumer.bodies == ["early"]


def test_what_a_store_holds_expires_on_time_though_nobody_asks_for_it_after_a_restart(rig: Rig) -> None:
    rig.client().producer("orders").send("early", ttl_s=10.0)
    rig.restart()
    rig.advance(9)
    assert rig.queue("orders").queue.available_count == 1
    rig.advance(2)
    assert rig.queue("orders").queue.available_count == 0
