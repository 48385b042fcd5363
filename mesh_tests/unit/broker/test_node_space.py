"""On a disk that is low: who waits, who goes on, and who is told?"""

import pytest

from broker.events import DiskFine, DiskLow
from broker.links.incoming import LARGE_BYTES, LINK_CREDIT
from broker.store.space import Space
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.rig import Producer, Rig
from wire.delivery import ACCEPTED

GIB = 1 << 30
PROBE = "_amqpmesh/broker/b1/probe-1"


def tell(rig: Rig, free_bytes: int) -> None:
    rig.node.on_space(Space("/data", 100 * GIB, free_bytes, 5, 6), rig.now)
    rig.run()


def make_low(rig: Rig) -> None:
    tell(rig, GIB)


def make_fine(rig: Rig) -> None:
    tell(rig, 50 * GIB)


def use_credit(producer: Producer) -> list[int]:
    """Send as long as there is credit."""
    sent = []
    while producer.link.credit:
        sent.append(producer.send("x"))
    return sent


def test_producers_wait_while_the_disk_is_low_and_go_on_when_there_is_room(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    make_low(rig)
    sent = use_credit(producer)
    assert len(sent) == LINK_CREDIT
    assert producer.outcomes == {}
    assert rig.queue("orders").queue.available_count == 0
    assert client.producer("orders", "later").link.credit == 0
    make_fine(rig)
    assert producer.outcomes == dict.fromkeys(sent, ACCEPTED)
    assert producer.link.credit > 0
    assert client.producer("orders", "later still").link.credit == LINK_CREDIT


@pytest.mark.parametrize("address", ["news.sport", None])
def test_who_publishes_or_may_send_anywhere_waits_too(rig: Rig, address: str | None) -> None:
    producer = rig.client().producer(address)
    make_low(rig)
    producer.send("x", to="news.sport")
    assert producer.outcomes == {}
    make_fine(rig)
    assert producer.outcomes == {0: ACCEPTED}


def test_a_queue_is_drained_while_the_disk_is_low(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    for number in range(10):
        producer.send(number)
    make_low(rig)
    consumer = client.consumer("orders")
    assert consumer.bodies == list(range(10))
    for received in consumer.received:
        received.give(ACCEPTED)
    rig.crash()
    assert rig.client().consumer("orders").bodies == []


def test_messages_expire_while_the_disk_is_low(rig: Rig) -> None:
    rig.client().producer("orders").send("short", ttl_s=2)
    make_low(rig)
    rig.advance(3)
    assert held_by(rig.store.load()).messages == []


def test_probes_and_messages_that_are_kept_nowhere_go_on(rig: Rig) -> None:
    make_low(rig)
    client = rig.client()
    for number, address in enumerate([PROBE, client.consumer(None, is_dynamic=True).link.remote_source.address]):
        producer = client.producer(address, f"to {number}")
        producer.send("x")
        assert producer.outcomes == {0: ACCEPTED}


def test_of_a_large_message_nothing_is_written_while_the_disk_is_low(rig: Rig) -> None:
    make_low(rig)
    client = rig.client()
    producer = client.producer(PROBE)
    producer.send(bytes(3 * LARGE_BYTES))
    assert list((rig.data / "large").iterdir()) == []
    assert producer.outcomes == {}
    make_fine(rig)
    assert client.consumer(PROBE).bodies == [bytes(3 * LARGE_BYTES)]


def test_who_leaves_while_the_disk_is_low_is_not_let_in_later(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    make_low(rig)
    producer.send("x")
    client.vanish()
    make_fine(rig)
    assert rig.queue("orders").queue.available_count == 0


def test_it_is_told_once_when_it_becomes_low_and_once_when_it_is_fine(rig: Rig) -> None:
    make_fine(rig)
    make_low(rig)
    make_low(rig)
    assert rig.snapshot().is_disk_low
    make_fine(rig)
    assert not rig.snapshot().is_disk_low
    assert [event for event in rig.log if isinstance(event, DiskLow | DiskFine)] == [
        DiskLow("/data", GIB, 5, 6, 5 * GIB),
        DiskFine("/data", 50 * GIB, 5, 6, 5 * GIB),
    ]
