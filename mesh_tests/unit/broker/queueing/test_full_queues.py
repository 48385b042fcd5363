"""What does a queue do that is as long as it may be?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.links.incoming import LINK_CREDIT
from mesh_tests.unit.broker.rig import Consumer, Producer, Rig, topology_with
from wire.delivery import ACCEPTED, OutcomeCode
from wire.terminus import Durability, Expiry

LIMIT = 10
ADDRESSES = {
    "blocks": {"type": "queue", "max_messages": LIMIT},
    "large": {"type": "queue", "max_messages": 10 * LINK_CREDIT},
    "heavy": {"type": "queue", "max_bytes": 20_000},
    "refuses": {"type": "queue", "max_messages": LIMIT, "when_full": "reject"},
    "refuses-bytes": {"type": "queue", "max_bytes": 1000, "when_full": "reject"},
    "drops": {"type": "queue", "max_messages": LIMIT, "when_full": "drop-oldest"},
    "buries": {"type": "queue", "max_messages": LIMIT, "when_full": "dead-letter", "dead_letter": "dead"},
    "news.#": {"type": "topic", "max_messages": LIMIT},
    "dead": "queue",
}
DURABLE = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "data", topology_with(ADDRESSES))
    yield rig
    rig.store.close()


def send_while_there_is_credit(producer: Producer, most: int = 10_000, **fields: Any) -> int:
    count = 0
    while producer.link.credit > 0 and count < most:
        producer.send(count, **fields)
        count += 1
    return count


def accept(consumer: Consumer, count: int) -> None:
    for received in [each for each in consumer.received if not each.is_given][:count]:
        received.give(ACCEPTED)


def test_producers_have_credit_for_what_there_is_room_for(rig: Rig) -> None:
    producer = rig.client().producer("blocks")
    assert send_while_there_is_credit(producer) == LIMIT
    assert {outcome.kind for outcome in producer.outcomes.values() if outcome} == {OutcomeCode.ACCEPTED}


def test_an_empty_queue_with_much_room_gives_as_much_credit_as_any(rig: Rig) -> None:
    assert rig.client().producer("large").link.credit == LINK_CREDIT


def test_producers_go_on_as_soon_as_there_is_room(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("blocks")
    send_while_there_is_credit(producer)
    consumer = client.consumer("blocks", credit=3)
    accept(consumer, 2)
    assert send_while_there_is_credit(producer) == 2
    accept(consumer, 1)
    assert send_while_there_is_credit(producer) == 1
    assert rig.queue("blocks").queue.available_count == LIMIT


def test_a_snapshot_tells_who_waits_for_room_and_for_how_long(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("blocks", name="first")

    def waits() -> tuple[int, float]:
        rig.node.on_space(rig.store.look(), rig.now)  # as each second
        found = rig.queue("blocks")
        return found.waiting_count, found.waiting_s

    send_while_there_is_credit(producer)
    assert waits() == (1, 0.0)
    rig.advance(5)
    late = client.producer("blocks", name="late")
    rig.advance(7)
    assert waits() == (2, 12.0)
    producer.link.close()
    rig.run()
    assert waits() == (1, 7.0)
    assert late.link.credit == 0
    accept(client.consumer("blocks"), LIMIT)
    assert waits() == (0, 0.0)


def test_every_producer_of_a_full_queue_gets_its_turn(rig: Rig) -> None:
    client = rig.client()
    producers = [client.producer("blocks", name=str(number)) for number in range(3)]
    beyond = sum(producer.link.credit for producer in producers[1:])
    assert sum(send_while_there_is_credit(producer) for producer in producers) == LIMIT + beyond < LIMIT + LIMIT // 2
    consumer = client.consumer("blocks")
    accept(consumer, LIMIT)
    assert [producer.link.credit > 0 for producer in producers] == [True] * 3


def test_a_producer_that_says_nothing_keeps_no_other_from_an_empty_queue(rig: Rig) -> None:
    client = rig.client()
    client.producer("blocks", name="idle")
    busy = client.producer("blocks", name="busy")
    consumer = client.consumer("blocks")
    for _ in range(3 * LIMIT):
        assert send_while_there_is_credit(busy, 1) == 1
        accept(consumer, 1)


def test_a_producer_that_leaves_leaves_its_credit_to_others(rig: Rig) -> None:
    client, other = rig.client(), rig.client("other")
    other.producer("blocks", name="idle")
    busy = client.producer("blocks", name="busy")
    other.vanish()
    assert send_while_there_is_credit(busy) == LIMIT


def test_messages_that_are_purged_by_time_make_room(rig: Rig) -> None:
    producer = rig.client().producer("blocks")
    send_while_there_is_credit(producer, ttl_s=5)
    rig.advance(6)
    assert send_while_there_is_credit(producer) == LIMIT


def test_a_limit_of_bytes_holds_producers_back_too(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("heavy")
    while producer.link.credit > 0:
        producer.send(bytes(2000))
    assert 16_000 <= rig.queue("heavy").queue.size_bytes <= 24_000
    accept(client.consumer("heavy"), 5)
    assert producer.link.credit > 0


def test_a_full_queue_is_full_after_a_restart(rig: Rig) -> None:
    send_while_there_is_credit(rig.client().producer("blocks"))
    rig.restart()
    assert rig.client().producer("blocks").link.credit == 0


def test_who_sends_without_a_fixed_address_is_told_that_the_queue_is_full(rig: Rig) -> None:
    client = rig.client()
    send_while_there_is_credit(client.producer("blocks"))
    anonymous = client.producer(None, name="anonymous")
    outcome = anonymous.outcomes[anonymous.send("one more", to="blocks")]
    assert outcome is not None
    assert outcome.kind is OutcomeCode.REJECTED
    assert outcome.error is not None
    assert outcome.error.condition == "amqp:resource-limit-exceeded"


@pytest.mark.parametrize(("address", "body", "room"), [("refuses", b"x", LIMIT), ("refuses-bytes", bytes(180), 5)])
def test_a_queue_may_refuse_what_it_has_no_room_for(rig: Rig, address: str, body: bytes, room: int) -> None:
    client = rig.client()
    producer = client.producer(address)
    outcomes = [producer.outcomes[producer.send(body)] for _ in range(room + 1)]
    assert [outcome.kind for outcome in outcomes if outcome] == [OutcomeCode.ACCEPTED] * room + [OutcomeCode.REJECTED]
    (refused,) = outcomes[-1:]
    assert refused is not None
    assert refused.error is not None
    assert refused.error.condition == "amqp:resource-limit-exceeded"
    assert address in refused.error.description
    accept(client.consumer(address), 1)
    assert producer.outcomes[producer.send(body)] == ACCEPTED


def test_what_waits_for_the_disk_counts_for_the_limit(rig: Rig) -> None:
    producer = rig.client().producer("refuses")
    rig.is_disk_held = True
    numbers = [producer.send("x") for _ in range(LIMIT + 1)]
    rig.is_disk_held = False
    rig.run()
    assert [producer.outcomes[number].kind for number in numbers].count(OutcomeCode.REJECTED) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("stop", [None, Rig.restart])
def test_a_queue_may_drop_its_oldest(rig: Rig, stop: Callable[[Rig], None] | None) -> None:
    producer = rig.client().producer("drops")
    for body in range(LIMIT + 3):
        producer.send(body)
    assert rig.queue("drops").queue.departed_total["no room"] == 3
    if stop is not None:
        stop(rig)
    assert rig.client().consumer("drops").bodies == list(range(3, LIMIT + 3))


def test_what_a_consumer_holds_is_not_dropped(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("drops")
    producer.send(0)
    consumer = client.consumer("drops", credit=1)
    for body in range(1, LIMIT + 2):
        producer.send(body)
    accept(consumer, 1)
    consumer.link.grant(100)
    rig.run()
    assert consumer.bodies == [0, *range(3, LIMIT + 2)]


def test_a_queue_may_bury_its_oldest(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("buries")
    for body in range(LIMIT + 3):
        producer.send(body)
    letters = client.consumer("dead", name="reader").received
    assert [letter.message.body for letter in letters] == [0, 1, 2]
    assert {letter.message.annotations["x-opt-dead-letter-reason"] for letter in letters} == {"full"}
    assert client.consumer("buries").bodies == list(range(3, LIMIT + 3))


def test_a_subscription_that_nobody_reads_keeps_the_newest_and_stops_nobody(rig: Rig) -> None:
    client = rig.client()
    slow = client.consumer("news.#", credit=0, name="slow", **DURABLE)
    fast = client.consumer("news.#", credit=1000, name="fast", **DURABLE)
    producer = client.producer("news.x")
    for body in range(3 * LIMIT):
        producer.send(body)
        accept(fast, 1)
    slow.link.grant(1000)
    rig.run()
    assert slow.bodies == list(range(2 * LIMIT, 3 * LIMIT))
    assert len(fast.received) == 3 * LIMIT


@pytest.mark.parametrize("most", [1, 1000, 20_000])
def test_a_message_larger_than_all_the_room_stops_nobody_for_good(tmp_path: Path, most: int) -> None:
    rig = Rig(tmp_path / "data", topology_with({"small": {"type": "queue", "max_bytes": most}}))
    client = rig.client()
    producer = client.producer("small")
    producer.send(bytes(30_000))
    assert rig.client("other").producer("small").link.credit == 0
    accept(client.consumer("small"), 1)
    assert producer.link.credit > 0
    rig.store.close()
