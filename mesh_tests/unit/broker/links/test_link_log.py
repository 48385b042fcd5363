"""What does the link log hear of a broker's queues, and of the messages that go in and out?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.links.link_log import ROUTER
from broker.queueing.ages import Ages
from mesh_tests.rings import Record, Ring
from mesh_tests.unit.broker.operator import Operator
from mesh_tests.unit.broker.rig import Rig, topology_with
from recording.columns import RecordEvent
from recording.records import Recorder
from recording.ring_format import KINDS
from wire.delivery import ACCEPTED, RELEASED, rejected
from wire.endpoint import Peer
from wire.terminus import DistributionMode
from wire.transport.tls import Role

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
def ring() -> Ring:
    return Ring(4096)


@pytest.fixture
def rig(tmp_path: Path, ring: Ring) -> Iterator[Rig]:
    rig = Rig(tmp_path / "data", topology_with(ADDRESSES), Recorder(ring.memory, "full"))
    yield rig
    rig.store.close()


def events_of(records: list[Record]) -> list[tuple[RecordEvent | None, int]]:
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
    assert events_of([came, went]) == [(RecordEvent.ENQUEUED, queue), (RecordEvent.DEQUEUED, queue)]
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
    named = {
        row["queue"]: row["address"] for row in [*rows, *ring.take()[1]] if row["kind"] == "queue" and "address" in row
    }
    assert [(event, named[queue]) for event, queue in events_of(records)] == [
        (RecordEvent.ENQUEUED, "orders"),
        (RecordEvent.DEAD_LETTERED, "orders"),
        (RecordEvent.ENQUEUED, "dead"),
        (RecordEvent.ENQUEUED, "orders"),
        (RecordEvent.EXPIRED, "orders"),
        (RecordEvent.ENQUEUED, "late"),
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
    assert moved == [(RecordEvent.REMOVED, "orders"), (RecordEvent.ENQUEUED, "plain")]


def links_of(rows: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == "link" and row["event"] == event]


def test_links_are_told_of_with_what_they_are_for_and_whose_they_are(rig: Rig, ring: Ring):
    client = rig.client("somebody")
    client.producer("plain")
    client.consumer("orders")
    rig.run()
    rows = ring.take()[1]
    (connection,) = [row for row in rows if row["kind"] == "connection"]
    assert (connection["role"], connection["direction"]) == ("client", "incoming")
    came, went = links_of(rows, "opened")
    assert (came["role"], came["direction"], came["address"], came["treatment"], came["name"]) == (
        "producer", "incoming", "plain", "queue", "producer",
    )  # fmt: skip
    assert (went["role"], went["direction"], went["address"], went["name"]) == (
        "consumer", "outgoing", "orders", "consumer",
    )  # fmt: skip
    assert {(each["sender_settle_mode"], each["receiver_settle_mode"]) for each in (came, went)} == {("mixed", "first")}
    assert came["connection"] == went["connection"] == connection["connection"]
    assert came["link"] != went["link"]


def test_links_of_a_router_are_no_links_of_clients(rig: Rig, ring: Ring):
    peer = Peer(is_mesh=True, mesh_name="r1", mesh_role=Role.ROUTER)
    rig.client("mesh", peer=peer).producer("plain")
    (opened,) = links_of(ring.take()[1], "opened")
    assert (opened["role"], opened["direction"]) == ("router", "incoming")


def test_without_certificates_a_router_is_known_by_what_it_says(rig: Rig, ring: Ring):
    client = rig.client("mesh", properties={ROUTER: "r1"})
    client.producer("plain")
    rows = ring.take()[1]
    assert {row["role"] for row in rows if row["kind"] in ("link", "connection")} == {"router"}


def test_a_link_that_ends_is_told_with_its_reason_and_only_once(rig: Rig, ring: Ring):
    client = rig.client("somebody")
    consumer, _ = client.consumer("orders"), client.producer("plain")
    came = {row["direction"]: row["link"] for row in links_of(ring.take()[1], "opened")}
    consumer.close()
    (closed,) = links_of(ring.take()[1], "closed")
    assert (closed["link"], closed.get("cause")) == (came["outgoing"], None)
    client.vanish()
    rows = ring.take()[1]
    (lost,) = links_of(rows, "closed")
    assert (lost["link"], lost["cause"]) == (came["incoming"], "broken")
    assert [row["kind"] for row in rows] == ["link", "connection"]


def test_a_link_that_another_took_over_is_told_so(rig: Rig, ring: Ring):
    rig.client("somebody").producer("plain")
    (first,) = links_of(ring.take()[1], "opened")
    rig.client("somebody").producer("plain")
    rows = ring.take()[1]
    (closed,) = links_of(rows, "closed")
    assert (closed["link"], closed["cause"]) == (first["link"], "amqp:link:stolen")
    assert len(links_of(rows, "opened")) == 1


def credits_of(rig: Rig, ring: Ring) -> list[dict[str, Any]]:
    rig.node.on_second(rig.now)
    return [row for row in ring.take()[1] if row["kind"] == "credit"]


def waits_of(rig: Rig, ring: Ring) -> list[dict[str, Any]]:
    return [row for row in credits_of(rig, ring) if "starved_us" in row]


def drops_of(rig: Rig, ring: Ring) -> list[tuple[int, str]]:
    rig.node.on_second(rig.now)
    return [(row["count"], row["cause"]) for row in ring.take()[1] if row["kind"] == "drop"]


@pytest.fixture
def small(tmp_path: Path, ring: Ring) -> Iterator[Rig]:
    entry = {"type": "queue", "max_messages": 2, "when_full": "reject"}
    rig = Rig(tmp_path / "data", topology_with({"small": entry}), Recorder(ring.memory, "full"))
    yield rig
    rig.store.close()


def test_what_came_settled_and_was_refused_is_told_each_second(small: Rig, ring: Ring):
    producer = small.client().producer("small")
    for _ in range(5):
        producer.send(b"x", is_settled=True)
    producer.send(b"its sender hears of it")
    assert drops_of(small, ring) == [(3, "full_queue")]
    assert drops_of(small, ring) == []
    producer.send_raw(b"no message", is_settled=True)
    assert drops_of(small, ring) == [(1, "amqp:decode-error")]
    small.run()
    assert producer.link.credit > 0


def test_what_was_refused_and_is_not_told_yet_is_told_when_the_link_ends(small: Rig, ring: Ring):
    client = small.client()
    producer = client.producer("small")
    for _ in range(4):
        producer.send(b"x", is_settled=True)
    producer.link.detach()
    small.run()
    assert drops_of(small, ring) == [(2, "full_queue")]


def test_what_each_new_link_has_of_credit_is_told_once_though_it_never_lacked_any(rig: Rig, ring: Ring):
    producer = rig.client().producer("plain")
    consumer = rig.client("other").consumer("plain", credit=7)
    said = [(row["credit"], row.get("unsettled_count")) for row in credits_of(rig, ring)]
    assert said == [(7, 0), (producer.link.credit, None)] or said == [(producer.link.credit, None), (7, 0)]
    assert consumer.received == []
    rig.advance(20.0)
    assert credits_of(rig, ring) == []


def kept_of(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Of outgoing links: their credit, and what is unsettled."""
    return [(row["credit"], row["unsettled_count"]) for row in rows if "unsettled_count" in row]


def seconds(rig: Rig, count: int) -> None:
    for _ in range(count):
        rig.advance(1.0)
        rig.node.on_second(rig.now)


def test_credit_that_a_consumer_of_an_empty_queue_grants_or_takes_back_is_told(rig: Rig, ring: Ring):
    consumer = rig.client().consumer("plain", credit=7)
    for credit in 12, 3:
        seconds(rig, 14)
        ring.take()
        consumer.link.set_credit(credit)
        rig.run()
        seconds(rig, 14)
        assert kept_of(ring.take()[1]) == [(credit, 0)]


def test_deliveries_that_a_consumer_keeps_are_told_of_its_link_and_of_the_queue(rig: Rig, ring: Ring):
    producer = rig.client().producer("plain")
    consumer = rig.client("other").consumer("plain", credit=5)
    seconds(rig, 1)
    ring.take()
    for _ in range(8):
        producer.send(b"x")
    seconds(rig, 13)
    rows = ring.take()[1]
    assert kept_of(rows) == [(0, 5)]
    depths = [(row["depth_count"], row["acquired_count"]) for row in rows if row["kind"] == "queue"]
    assert depths[-1] == (8, 5)
    consumer.received[0].give(RELEASED)
    seconds(rig, 1)
    rows = ring.take()[1]
    assert kept_of(rows) == [(0, 0)]
    depths = [(row["depth_count"], row["acquired_count"]) for row in rows if row["kind"] == "queue"]
    assert depths == [(8, 4)]
    consumer.link.grant(1)
    seconds(rig, 1)
    consumer.detach()
    seconds(rig, 1)
    depths = [(row["depth_count"], row["acquired_count"]) for row in ring.take()[1] if row["kind"] == "queue"]
    assert depths == [(8, 5), (8, 0)]


def test_a_message_that_is_half_sent_waits_for_no_outcome(rig: Rig, ring: Ring):
    producer, client = rig.client().producer("plain"), rig.client("other")
    consumer = client.consumer("plain", credit=5)
    producer.send(b"x")
    seconds(rig, 1)
    ring.take()
    read, times = client.exchange, iter(range(4))
    # It stops reading in the middle of the large one.
    client.exchange = lambda: next(times, None) is not None and read()  # type: ignore[method-assign]
    producer.send(b"x" * 3_000_000)
    seconds(rig, 14)
    assert len(consumer.received) == 1
    assert kept_of(ring.take()[1])[-1][1] == 1


def test_who_looks_through_a_queue_keeps_nothing(rig: Rig, ring: Ring):
    producer = rig.client().producer("plain")
    for _ in range(3):
        producer.send(b"x")
    browser = rig.client("other").consumer("plain", credit=10, distribution_mode=DistributionMode.COPY)
    seconds(rig, 14)
    assert len(browser.received) == 3
    assert {unsettled for _, unsettled in kept_of(ring.take()[1])} == {0}


def test_of_a_queue_that_is_not_recorded_no_credit_is_told(rig: Rig, ring: Ring):
    rig.client().producer("quiet")
    rig.client("other").consumer("quiet")
    seconds(rig, 14)
    assert [row for row in ring.take()[1] if row["kind"] == "credit"] == []


def test_a_producer_of_a_full_queue_waits_for_it_until_there_is_room(tmp_path: Path, ring: Ring):
    rig = Rig(
        tmp_path / "data", topology_with({"small": {"type": "queue", "max_messages": 4}}), Recorder(ring.memory, "full")
    )
    producer = rig.client().producer("small")
    while producer.link.credit:
        producer.send(b"x")
    credits_of(rig, ring)
    rig.advance(2.0)
    (waits,) = waits_of(rig, ring)
    assert (waits["credit"], waits["cause"]) == (0, "full_queue")
    assert 1_900_000 <= waits["starved_us"] <= 2_100_000
    rig.advance(0.5)
    for received in list(rig.client("other").consumer("small").received):
        received.give(ACCEPTED)
    rig.run()
    rig.advance(0.5)
    (over,) = waits_of(rig, ring)
    assert over["cause"] == "full_queue"
    assert over["credit"] == producer.link.credit > 0
    assert 400_000 <= over["starved_us"] <= 700_000
    rig.advance(2.0)
    assert waits_of(rig, ring) == []
    rig.store.close()


def test_a_producer_whose_messages_are_not_on_disk_yet_waits_for_the_disk(rig: Rig, ring: Ring):
    producer = rig.client().producer("plain")
    rig.is_disk_held = True
    while producer.link.credit:
        producer.send(b"x")
    credits_of(rig, ring)
    rig.now += 3.0
    (waits,) = waits_of(rig, ring)
    assert waits["cause"] == "disk"
    assert 2_900_000 <= waits["starved_us"] <= 3_100_000
    rig.is_disk_held = False


def test_of_a_link_that_ends_its_time_without_credit_is_told_before(rig: Rig, ring: Ring):
    client = rig.client()
    producer = client.producer("plain")
    rig.is_disk_held = True
    while producer.link.credit:
        producer.send(b"x")
    credits_of(rig, ring)
    rig.now += 1.0
    client.vanish()
    rows = [row for row in ring.take()[1] if row["kind"] != "queue"]
    assert [row["kind"] for row in rows] == ["credit", "link", "connection"]
    assert 900_000 <= rows[0]["starved_us"] <= 1_100_000
    rig.is_disk_held = False


def test_a_queue_that_is_not_recorded_has_links_but_no_time_without_credit(rig: Rig, ring: Ring):
    producer = rig.client().producer("quiet")
    rig.is_disk_held = True
    while producer.link.credit:
        producer.send(b"x")
    rig.now += 3.0
    rig.node.on_second(rig.now)
    rows = ring.take()[1]
    assert len(links_of(rows, "opened")) == 1
    assert [row for row in rows if row["kind"] == "credit"] == []
    rig.is_disk_held = False
