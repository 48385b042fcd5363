"""What does the link log hear of a broker's queues, and of the messages that go in and out?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from addressing.link_log import Event
from addressing.link_log_ring import KINDS
from broker.ages import Ages
from mesh_tests.rings import Record, Ring
from mesh_tests.unit.broker.operator import Operator
from mesh_tests.unit.broker.rig import Rig, topology_with
from wire.delivery import ACCEPTED, rejected
from wire.records import record

REJECTED = rejected("amqp:decode-error", "no")
ADDRESSES: dict[str, Any] = {
    "orders": {"type": "queue", "dead_letter": "dead", "expiry": "late"},
    "dead": "queue",
    "late": "queue",
    "plain": "queue",
    "quiet": {"type": "queue", "link_log": "off"},
    "sums": {"type": "queue", "link_log": "summary"},
}


@pytest.fixture
def ring() -> Iterator[Ring]:
    yield Ring(4096)
    record(None)


@pytest.fixture
def rig(tmp_path: Path, ring: Ring) -> Iterator[Rig]:
    rig = Rig(tmp_path / "data", topology_with(ADDRESSES), record(ring.memory, "full"))
    yield rig
    rig.store.close()


def events_of(records: list[Record]) -> list[tuple[Event | None, int]]:
    return [(KINDS[each.kind][1], each.incoming) for each in records]


def rows_of(rows: list[dict[str, Any]], event: str) -> dict[str, dict[str, Any]]:
    return {row["address"]: row for row in rows if row["kind"] == "queue" and row["event"] == event}


def numbers(rig: Rig, ring: Ring) -> dict[str, int]:
    rig.node.on_second(rig.now)
    return {address: row["queue"] for address, row in rows_of(ring.take()[1], "opened").items()}


def test_a_message_is_recorded_as_it_comes_and_as_it_goes_with_how_long_it_was_there(rig: Rig, ring: Ring):
    producer = rig.client().producer("plain")
    queue = numbers(rig, ring)["plain"]
    producer.send(b"x" * 100)
    rig.run()
    rig.advance(5.0)
    consumer = rig.client().consumer("plain")
    for received in list(consumer.received):
        received.give(ACCEPTED)
    rig.run()
    came, went = ring.take()[0]
    assert events_of([came, went]) == [(Event.ENQUEUED, queue), (Event.DEQUEUED, queue)]
    assert (came.count, went.count) == (1, 1)
    assert came.size_bytes == went.size_bytes > 100
    assert 4_900_000 <= went.took_us <= 5_200_000


def test_what_nobody_accepts_and_what_is_too_old_is_told_apart_and_comes_into_another_queue(rig: Rig, ring: Ring):
    producer = rig.client().producer("orders")
    producer.send(b"refused")
    rig.run()
    consumer = rig.client().consumer("orders")
    consumer.received[0].give(REJECTED)
    rig.run()
    consumer.close()
    producer.send(b"late", ttl_s=1.0)
    rig.run()
    rig.advance(10.0)
    records, rows = ring.take()
    rig.node.on_second(rig.now)
    named = {row["queue"]: row["address"] for row in [*rows, *ring.take()[1]] if row.get("address")}
    assert [(event, named[queue]) for event, queue in events_of(records)] == [
        (Event.ENQUEUED, "orders"),
        (Event.DEAD_LETTERED, "orders"),
        (Event.ENQUEUED, "dead"),
        (Event.ENQUEUED, "orders"),
        (Event.EXPIRED, "orders"),
        (Event.ENQUEUED, "late"),
    ]


def test_depth_and_age_are_told_once_a_second_and_only_of_queues_where_something_happened(rig: Rig, ring: Ring):
    producer = rig.client().producer("plain")
    rig.client("other").producer("orders")
    names = numbers(rig, ring)
    for _ in range(3):
        producer.send(b"x")
    rig.run()
    rig.advance(2.0)
    rig.node.on_second(rig.now)
    (changed,) = [row for row in ring.take()[1] if row["event"] == "changed"]
    assert changed["queue"] == names["plain"]
    assert changed["depth_count"] == 3
    assert changed["depth_bytes"] > 0
    assert 1_900_000 <= changed["oldest_us"] <= 2_200_000
    rig.node.on_second(rig.now)
    assert ring.take() == ([], [])


def test_levels_are_those_of_the_queues(rig: Rig, ring: Ring):
    producers = [rig.client(address).producer(address) for address in ("quiet", "sums", "plain")]
    names = numbers(rig, ring)
    for producer in producers:
        for _ in range(5):
            producer.send(b"x")
    rig.run()
    rig.advance(2.0)
    rig.node.on_second(rig.now)
    records, _ = ring.take()
    assert names["quiet"] not in {each.incoming for each in records}
    assert [each.count for each in records if each.incoming == names["sums"]] == [5]
    assert [each.count for each in records if each.incoming == names["plain"]] == [1] * 5


def test_a_queue_that_goes_is_told(rig: Rig, ring: Ring):
    client = rig.client()
    consumer = client.consumer(None, is_dynamic=True)
    rig.run()
    names = numbers(rig, ring)
    (name,) = [name for name in names if name not in ADDRESSES]
    consumer.close()
    rig.run()
    rig.node.on_second(rig.now)
    assert rows_of(ring.take()[1], "closed")[name]["queue"] == names[name]


def test_who_connects_is_told(rig: Rig, ring: Ring):
    client = rig.client("somebody")
    (opened,) = [row for row in ring.take()[1] if row["kind"] == "connection"]
    assert (opened["event"], opened["container"], opened["remote_address"]) == ("opened", "somebody", "test")
    client.vanish()
    rig.run()
    (closed,) = [row for row in ring.take()[1] if row["kind"] == "connection"]
    assert (closed["event"], closed["connection"]) == ("closed", opened["connection"])


def test_the_age_of_a_message_is_known_to_the_millisecond_and_of_old_ones_to_a_thousandth():
    ages = Ages()
    for number in range(400_000):
        ages.hear(number, 1_000_000 + number * 1000)
        assert ages.count <= 65_536
    now_us = 1_000_000 + 400_000 * 1000
    for number in range(1, 400_000, 997):
        age_us = now_us - (1_000_000 + number * 1000)
        assert abs(now_us - ages.came_at(number) - age_us) <= max(1000, age_us / 1000)


def test_of_a_message_from_before_the_start_it_is_known_when_the_first_came_after():
    ages = Ages()
    assert ages.came_at(5) == 0
    ages.hear(100, 7_000_000)
    assert ages.came_at(5) == 7_000_000


def test_a_queue_with_a_level_of_its_own_works_where_there_is_no_ring(tmp_path: Path):
    record(None)
    rig = Rig(tmp_path / "data", topology_with({"loud": {"type": "queue", "link_log": "full"}}))
    try:
        producer = rig.client().producer("loud")
        number = producer.send(b"x")
        assert producer.outcomes[number] is not None
    finally:
        rig.store.close()


def test_what_was_there_before_a_restart_is_not_recorded_as_coming_again_but_its_depth_is_told(rig: Rig, ring: Ring):
    producer = rig.client().producer("plain")
    for body in (b"x", b"x" * 400_000):
        producer.send(body)
    rig.restart()
    ring.take()
    rig.node.on_second(rig.now)
    records, rows = ring.take()
    assert records == []
    depths = [row["depth_count"] for row in rows if row["kind"] == "queue" and row["event"] == "changed"]
    assert 2 in depths


def test_what_an_operator_moves_leaves_one_queue_and_comes_into_another(rig: Rig, ring: Ring):
    producer = rig.client().producer("orders")
    producer.send(b"x")
    names = {number: address for address, number in numbers(rig, ring).items()}
    Operator(rig).do("move", source="orders", target="plain")
    rig.run()
    rig.node.on_second(rig.now)
    records, rows = ring.take()
    names |= {row["queue"]: row["address"] for row in rows if row["kind"] == "queue" and "address" in row}
    moved = [(event, names[queue]) for event, queue in events_of(records) if names[queue] in ("orders", "plain")]
    assert moved == [(Event.REMOVED, "orders"), (Event.ENQUEUED, "plain")]
