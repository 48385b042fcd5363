"""Where do messages go that consumers reject or fail with, or whose time is over?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.operator import Operator
from mesh_tests.unit.broker.rig import WALL_OFFSET_S, Rig, topology_with
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, rejected
from wire.terminus import DistributionMode, Durability, Expiry

REJECTED = rejected("amqp:decode-error", "no")
ADDRESSES = {
    "orders": {"type": "queue", "dead_letter": "dead", "max_delivery_attempts": 2, "expiry": "late"},
    "plain": "queue",
    "news.#": {"type": "topic", "dead_letter": "dead"},
    "dead": {"type": "queue", "dead_letter": "buried"},
    "buried": "queue",
    "late": "queue",
}
DURABLE = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "data", topology_with(ADDRESSES))
    yield rig
    rig.store.close()


def annotations_of(reason: str, origin: str, count: int, at_s: float) -> dict[str, Any]:
    return {
        "x-opt-dead-letter-reason": reason,
        "x-opt-dead-letter-origin": origin,
        "x-opt-dead-letter-delivery-count": count,
        "x-opt-dead-letter-time": int((at_s + WALL_OFFSET_S) * 1000),
    }


def reject_all(rig: Rig, address: str) -> None:
    consumer = rig.client("rejects").consumer(address, name=f"rejects {address}")
    for received in list(consumer.received):
        received.give(REJECTED)
    consumer.close()


def test_what_a_consumer_rejects_is_a_dead_letter_with_its_reason_and_origin(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("bad", annotations={"mine": 7}, message_id="m")
    client.consumer("orders").received[0].give(REJECTED)
    (letter,) = client.consumer("dead", name="reader").received
    assert (letter.message.body, letter.message.message_id, letter.message.delivery_count) == ("bad", "m", 0)
    said = annotations_of("rejected", "orders", 0, rig.now)
    assert letter.message.annotations == {
        "mine": 7,
        **said,
        "x-opt-dead-letter-time": pytest.approx(said["x-opt-dead-letter-time"], abs=1000),
    }
    assert rig.queue("orders").queue.departed_total["rejected"] == 1


def test_what_consumers_fail_with_too_often_is_a_dead_letter(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("poison")
    consumer = client.consumer("orders")
    for attempt in (0, 1):
        assert consumer.received[attempt].message.delivery_count == attempt
        consumer.received[attempt].give(MODIFIED_FAILED)
    assert len(consumer.received) == 2
    (letter,) = client.consumer("dead", name="reader").received
    assert letter.message.annotations["x-opt-dead-letter-reason"] == "delivery-attempts"
    assert letter.message.annotations["x-opt-dead-letter-delivery-count"] == 2
    assert letter.message.delivery_count == 0


def test_what_consumers_release_is_no_dead_letter(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("later")
    consumer = client.consumer("orders")
    for attempt in range(5):
        consumer.received[attempt].give(RELEASED)
    assert len(consumer.received) == 6


def test_what_expires_goes_to_the_expiry_queue_and_stays_there(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("late", ttl_s=5)
    rig.advance(6)
    rig.advance(100_000)
    assert rig.queue("orders").queue.available_count == 0
    (late,) = client.consumer("late").received
    assert (late.message.body, late.message.ttl_s) == ("late", 0.0)
    assert late.message.annotations["x-opt-dead-letter-reason"] == "expired"


def test_a_queue_without_a_policy_drops_what_is_rejected_or_expires(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("plain")
    producer.send("bad"), producer.send("late", ttl_s=5)
    client.consumer("plain", credit=1).received[0].give(REJECTED)
    rig.advance(6)
    assert [queue.address for queue in rig.snapshot().queues] == ["plain"]
    assert held_by(rig.store.load()).entries == []


def test_a_dead_letter_that_is_rejected_goes_on_to_where_its_queue_says(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("worse")
    reject_all(rig, "orders")
    reject_all(rig, "dead")
    (letter,) = client.consumer("buried").received
    assert letter.message.annotations["x-opt-dead-letter-origin"] == "dead"


def test_a_dead_letter_goes_to_a_consumer_only_when_the_disk_has_it(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("bad")
    reader = client.consumer("dead", name="reader")
    consumer = client.consumer("orders")
    rig.is_disk_held = True
    consumer.received[0].give(REJECTED)
    assert reader.received == []
    rig.is_disk_held = False
    rig.run()
    assert reader.bodies == ["bad"]


@pytest.mark.parametrize("stops", [Rig.crash, Rig.restart])
def test_a_dead_letter_is_one_with_its_cause_after_a_restart(rig: Rig, stops: Any) -> None:
    rig.client().producer("orders").send("bad", ttl_s=50)
    reject_all(rig, "orders")
    stops(rig)
    rig.advance(100)
    (letter,) = rig.client().consumer("dead").received
    assert letter.message.annotations["x-opt-dead-letter-reason"] == "rejected"
    letter.give(ACCEPTED)
    inventory = held_by(rig.store.load())
    assert (inventory.entries, inventory.causes) == ([], {})


def test_a_crash_before_the_commit_leaves_it_in_its_queue_and_one_after_it_among_the_dead(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send("first"), producer.send("second")
    consumer = client.consumer("orders")
    consumer.received[0].give(REJECTED)
    rig.is_disk_held = True
    consumer.received[1].give(REJECTED)
    rig.crash()
    client = rig.client()
    assert client.consumer("orders", name="a").bodies == ["second"]
    assert client.consumer("dead", name="b").bodies == ["first"]


def test_a_large_dead_letter_is_whole(rig: Rig) -> None:
    client = rig.client()
    body = bytes(range(256)) * 2000
    client.producer("orders").send(body)
    client.consumer("orders").received[0].give(REJECTED)
    (letter,) = client.consumer("dead", name="reader").received
    assert letter.message.body == body
    assert letter.message.annotations["x-opt-dead-letter-origin"] == "orders"


def test_what_two_subscriptions_reject_is_one_dead_letter(rig: Rig) -> None:
    client = rig.client()
    consumers = [client.consumer("news.#", name=name, **DURABLE) for name in ("one", "two")]
    client.producer("news.x").send("gossip")
    for consumer in consumers:
        consumer.received[0].give(REJECTED)
    assert client.consumer("dead", name="reader").bodies == ["gossip"]
    assert len(held_by(rig.store.load()).entries) == 1


def test_what_a_subscription_rejected_stays_with_the_others(rig: Rig) -> None:
    client = rig.client()
    one, two = (client.consumer("news.#", name=name, **DURABLE) for name in ("one", "two"))
    client.producer("news.x").send("gossip")
    one.received[0].give(REJECTED)
    client.consumer("dead", name="reader").received[0].give(ACCEPTED)
    two.received[0].give(RELEASED)
    assert two.bodies == ["gossip", "gossip"]


def test_what_leaves_the_dead_and_dies_again_in_one_commit_is_not_half_there(rig: Rig) -> None:
    client = rig.client()
    one, two = (client.consumer("news.#", name=name, **DURABLE) for name in ("one", "two"))
    client.producer("news.x").send("gossip")
    reader = client.consumer("dead", name="reader")
    one.received[0].give(REJECTED)
    rig.is_disk_held = True
    reader.received[0].give(ACCEPTED)
    two.received[0].give(REJECTED)
    rig.is_disk_held = False
    rig.run()
    assert (reader.bodies, held_by(rig.store.load()).entries) == (["gossip"], [])


def test_a_dead_letter_may_come_again_when_it_was_read(rig: Rig) -> None:
    """The queue of dead letters forgets that it had the message."""
    client = rig.client()
    one, two = (client.consumer("news.#", name=name, **DURABLE) for name in ("one", "two"))
    client.producer("news.x").send("gossip")
    reader = client.consumer("dead", name="reader")
    one.received[0].give(REJECTED)
    reader.received[0].give(ACCEPTED)
    two.received[0].give(REJECTED)
    assert reader.bodies == ["gossip", "gossip"]


# Sent back by an operator
def test_dead_letters_go_back_to_the_queues_that_they_come_from(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("bad"), client.producer("late", name="to late").send("native")
    reject_all(rig, "orders")
    operator = Operator(rig)
    assert operator.do("redrive", address="dead") == [{"messages": 1, "not_moved": 0}]
    (again,) = client.consumer("orders", name="again").received
    assert (again.message.body, again.message.annotations) == ("bad", {})
    assert "can go back to a queue of origin" in operator.refusal("redrive", address="late")


def test_what_expired_and_was_sent_back_does_not_expire_again(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("late", ttl_s=5)
    rig.advance(6)
    operator = Operator(rig)
    assert operator.count("redrive", address="late") == 1
    rig.advance(10)
    rig.restart()
    rig.advance(10)
    (late,) = rig.client().consumer("orders").received
    assert (late.message.body, late.message.ttl_s) == ("late", 0.0)


def test_what_was_sent_back_may_die_again(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("bad")
    for _ in range(3):
        reject_all(rig, "orders")
        assert Operator(rig).count("redrive", address="dead") == 1
    assert client.consumer("orders", name="last").bodies == ["bad"]
    assert len(held_by(rig.store.load()).entries) == 1


def test_show_says_why_a_message_is_where_it_is(rig: Rig) -> None:
    rig.client().producer("orders").send("bad")
    reject_all(rig, "orders")
    ((queue,),) = [part["queues"] for part in Operator(rig).do("show", address="dead")]
    (message,) = queue["messages"]
    assert (message["reason"], message["origin"]) == ("rejected", "orders")


# Annotations of a sender that nobody can read
def annotated(key: bytes, value: bytes) -> bytes:
    said = key + value
    return b"\x00\x53\x72\xc1" + bytes([len(said) + 1, 2]) + said + b"\x00\x53\x77\xa1\x01x"


@pytest.mark.parametrize(
    "message",
    [
        annotated(b"\xa3\x01a", b"\xa1\x02\xff\xfe"),
        annotated(b"\xa3\x01\xff", b"\x40"),
        annotated(b"\xc0\x03\x01\x54\x01", b"\x40"),
        annotated(b"\xa3\x01a", b"\x73\x7f\xff\xff\xff"),
    ],
    ids=["text that is not UTF-8", "a name that is not ASCII", "a list as a name", "no character"],
)
def test_a_dead_letter_whose_annotations_nobody_can_read_is_what_it_was(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, message: bytes
) -> None:
    monkeypatch.setattr("mesh_tests.unit.broker.rig.decode", lambda data: None)
    client = rig.client()
    client.producer("orders").send_raw(message)
    client.consumer("orders").received[0].give(REJECTED)
    assert client.consumer("dead", name="dead").received[0].data.endswith(message)


def test_binary_annotations_of_a_dead_letter_are_what_they_were(rig: Rig) -> None:
    value = bytes(range(100, 164))
    client = rig.client()
    client.producer("orders").send_raw(annotated(b"\xa3\x01a", b"\xa0\x40" + value))
    client.consumer("orders").received[0].give(REJECTED)
    assert value in client.consumer("dead", name="dead").received[0].data


def test_each_crash_while_a_consumer_has_it_counts_as_an_attempt(rig: Rig) -> None:
    rig.client().producer("orders").send("poison")
    seen = []
    for _ in range(3):
        seen += rig.client().consumer("orders", credit=1).counts
        rig.crash()
    assert seen == [0, 1, 2]


def test_a_browser_that_was_drained_is_shown_nothing_until_it_has_credit(rig: Rig) -> None:
    client = rig.client()
    browser = client.consumer("plain", credit=0, name="browser", distribution_mode=DistributionMode.COPY)
    browser.link.request_drain(10)
    rig.run()
    assert not browser.link.is_drain_pending
    client.producer("plain").send("gone")
    client.consumer("plain").received[0].give(ACCEPTED)
    browser.link.grant(1)
    rig.run()
    assert browser.bodies == []
