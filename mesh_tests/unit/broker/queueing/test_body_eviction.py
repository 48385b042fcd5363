"""One subscriber that hangs, and a broker that has others, too."""

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from broker.events import MemoryFine, MemoryLow, SubscriberBehind
from broker.queueing.body_eviction import CROWDED_BYTES
from broker.queueing.held_queue import HeldQueue
from mesh_tests.unit.broker.operator import subscribe
from mesh_tests.unit.broker.rig import Client, Consumer, Producer, Received, Rig, topology_with
from wire.delivery import ACCEPTED

BODY = "x" * 60_000
MANY = CROWDED_BYTES * 3 // 2 // len(BODY)


def rig_with(tmp_path: Path) -> Rig:
    return Rig(tmp_path, topology_with({"news.#": {"type": "topic"}, "orders": {"type": "queue"}}))


def publish(client: Client, count: int, quick: Consumer | None = None, address: str = "news.today") -> Producer:
    """As long as there is credit; ``quick`` takes what it gets."""
    producer = client.producer(address)
    for number in range(count):
        if not producer.link.credit:
            break
        producer.send(f"{number} {BODY}", runs=False)
        if number % 50 == 49:
            client.rig.run()
            for received in quick.received if quick is not None else ():
                if not received.is_given:
                    received.give(ACCEPTED, runs=False)
                    keep_number(received)
            client.rig.run()
    client.rig.run()
    return producer


def keep_number(received: Received) -> None:
    """Of each of thousands."""
    received.data = b""
    received.message = replace(received.message, body=str(received.message.body)[:10])


def numbers(bodies: list[str]) -> list[int]:
    return [int(body.split()[0]) for body in bodies]


@pytest.mark.parametrize("hung", [1, 3])
def test_subscribers_that_hang_lose_their_oldest_and_nobody_waits(tmp_path: Path, hung: int) -> None:
    rig = rig_with(tmp_path)
    behind = [rig.client(f"hung-{number}").consumer("news.#", credit=0) for number in range(hung)]
    quick = rig.client("quick").consumer("news.#", credit=10 * MANY)
    producer = publish(rig.client("publisher"), MANY, quick)
    assert producer.link.credit > 0
    assert numbers(quick.bodies) == list(range(MANY))
    assert rig.client("other").producer("orders").link.credit > 0
    events = [event for event in rig.log if isinstance(event, SubscriberBehind)]
    assert {event.address for event in events} == {"news.#"}
    assert all(event.size_bytes > 10 << 20 for event in events), "a word for each half, not for each message"
    assert rig.node.snapshot().pinned_bytes < CROWDED_BYTES
    for consumer in behind:
        consumer.link.grant(MANY)
        rig.run()
    lost = sum(event.message_count for event in events)
    kept = [numbers(consumer.bodies) for consumer in behind]
    assert sum(map(len, kept)) + lost == hung * MANY
    assert all(each == list(range(MANY - len(each), MANY)) for each in kept), "the newest of them"


def test_a_backlog_that_lies_on_the_disk_gives_no_way_to_one_in_memory(tmp_path: Path) -> None:
    topics = {"news.#": {"type": "topic"}, "weather.#": {"type": "topic"}}
    rig = Rig(tmp_path, topology_with(topics))
    subscribe(rig, "lasting")
    stored = rig.client("patient").consumer("news.#", credit=0)
    publish(rig.client("publisher"), MANY)
    rig.client("hung").consumer("weather.#", credit=0)
    publish(rig.client("other"), MANY, address="weather.today")
    assert {event.address for event in rig.log if isinstance(event, SubscriberBehind)} == {"weather.#"}
    stored.link.grant(MANY)
    rig.run()
    assert numbers(stored.bodies) == list(range(MANY))


def test_a_subscriber_that_hangs_gives_way_beside_one_that_holds_much(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    publisher = rig.client("publisher")
    rig.client("hoarder").consumer("news.#", credit=MANY * 7 // 10)
    publish(publisher, MANY * 7 // 10)
    rig.client("hung").consumer("news.#", credit=0)
    producer = publish(rig.client("another"), MANY)
    assert producer.link.credit > 0
    assert not any(isinstance(event, MemoryLow) for event in rig.log)


def test_who_took_much_and_has_little_left_does_not_give_way(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    busy = rig.client("busy").consumer("news.#", credit=MANY * 5 // 10)
    publish(rig.client("publisher"), MANY // 10, busy)
    rig.client("hung").consumer("news.#", credit=0)
    publish(rig.client("another"), MANY * 4 // 10, busy)
    publish(rig.client("third"), MANY * 3 // 10)
    assert any(isinstance(event, SubscriberBehind) for event in rig.log)
    busy.link.grant(MANY)
    rig.run()
    assert len(busy.bodies) == MANY // 10 + MANY * 4 // 10 + MANY * 3 // 10


def test_subscriptions_that_end_leave_nothing_behind(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    client = rig.client("coming and going")

    def held_after(rounds: int) -> int:
        for _ in range(rounds):
            client.consumer("news.#", credit=0).link.close()
            rig.run()
        gc.collect()
        return sum(isinstance(found, HeldQueue) for found in gc.get_objects())

    assert held_after(1) == held_after(20)


def test_what_a_consumer_holds_unsettled_holds_producers_back_and_that_is_told(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    client = rig.client("hoarder")
    client.consumer("news.#", credit=10 * MANY)
    publish(rig.client("publisher"), 2 * MANY)
    other = rig.client("other").producer("orders")
    assert other.link.credit == 0
    assert rig.snapshot().is_memory_low
    assert sum(isinstance(event, MemoryLow) for event in rig.log) == 1
    client.vanish()
    rig.run()
    assert other.link.credit > 0
    assert not rig.snapshot().is_memory_low
    assert sum(isinstance(event, MemoryFine) for event in rig.log) == 1
