"""The address of each delivery of a subscription with wildcards, and messages as they were for all other consumers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import proton
import pytest

from addressing.address import Address
from broker.addresses import BrokerAddress, BrokerAddressKind
from broker.links.incoming import LARGE_BYTES
from broker.queueing.body_cache import CACHE_BYTES
from broker.store.dump import stored_messages
from broker.store.read_store import reading
from mesh_tests.unit.broker.rig import Consumer, Received, Rig, topology_with
from mesh_tests.unit.wire.test_delivery_address import random_message
from wire.delivery import MODIFIED_FAILED, RELEASED, rejected
from wire.delivery_address import with_delivery_address
from wire.message import Message, encode
from wire.terminus import Durability, Expiry

DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
BODIES = {"small": b"x" * 100, "large": b"x" * (2 * LARGE_BYTES), "very large": b"x" * 900_000}
TOPICS = topology_with(
    {
        "dev/#": {"type": "topic", "dead_letter": "dead", "max_delivery_attempts": 2},
        "told/#": {"type": "topic", "fill_to": True},
        "dead": "queue",
        "parked": "queue",
    }
)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "data", TOPICS)


def told(received: Received) -> str | None:
    """The address of a delivery as an ordinary client reads it."""
    message = proton.Message()
    message.decode(received.data)
    instructions = message.instructions or {}
    found = instructions.get("x-opt-to")
    return None if found is None else str(found)


def told_to(consumer: Consumer) -> list[str | None]:
    return [told(received) for received in consumer.received]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("kept", [{}, DURABLE], ids=["passing", "durable"])
def test_a_subscriber_with_wildcards_knows_the_address_and_others_get_what_was_sent(
    rig: Rig, body: bytes, kept: dict[str, Any]
) -> None:
    client = rig.client()
    many, star = (client.consumer(name, name=name, **kept) for name in ("dev/#", "dev/*"))
    exact = client.consumer("dev/a", name="exact", **kept)
    message = encode(Message(body=body, annotations={"mine": 1}, durable=True))
    client.producer("dev/a").send_raw(message)
    assert told_to(many) == told_to(star) == ["dev/a"]
    assert many.received[0].data == star.received[0].data == with_delivery_address(message, b"dev/a")
    assert exact.received[0].data == message


@pytest.mark.parametrize("size", [10, 2 * LARGE_BYTES])
@pytest.mark.parametrize("seed", range(10))
def test_no_byte_of_a_message_changes_but_its_delivery_annotations(rig: Rig, seed: int, size: int) -> None:
    message = b"".join(random_message(random.Random(seed)).values()) + b"\x00\x53\x75\xb0" + size.to_bytes(4, "big")
    message += bytes(size)
    client = rig.client()
    many, exact = client.consumer("dev/#", name="many"), client.consumer("dev/a", name="exact")
    client.producer("dev/a").send_raw(message)
    assert [received.data for received in exact.received] == [message]
    assert [received.data for received in many.received] == [with_delivery_address(message, b"dev/a")]


def test_each_message_of_a_sender_without_an_address_has_its_own(rig: Rig) -> None:
    client = rig.client()
    many = client.consumer("dev/#")
    producer = client.producer(None)
    for to in ("dev/a", "amqp://host/dev/b", "amqp:dev/c.d"):
        producer.send("x", to=to)
    producer.send_raw(encode(Message(body=b"x" * 2 * LARGE_BYTES, to="dev/large")))
    assert told_to(many) == ["dev/a", "dev/b", "dev/c.d", "dev/large"]
    assert many.received[1].message.to == "amqp://host/dev/b"


def test_without_a_subscription_with_wildcards_nothing_is_added(rig: Rig) -> None:
    client = rig.client()
    exact = client.consumer("dev/a", **DURABLE)
    producer = client.producer("dev/a")
    messages = [encode(Message(body=body)) for body in BODIES.values()]
    for message in messages:
        producer.send_raw(message)
    assert [received.data for received in exact.received] == messages
    assert rig.queue("dev/a").queue.size_bytes == sum(map(len, messages))


def test_nothing_is_added_any_more_once_the_last_subscription_with_wildcards_is_gone(rig: Rig) -> None:
    client = rig.client()
    many, exact = client.consumer("dev/#", name="many"), client.consumer("dev/a", name="exact")
    producer = client.producer("dev/a")
    many.close()
    message = encode(Message(body=BODIES["large"]))
    producer.send_raw(message)
    assert rig.queue("dev/a").queue.size_bytes == len(message)
    assert exact.received[0].data == message


@pytest.mark.parametrize("ends", ["crash", "restart"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_address_survives_an_end_of_the_broker(rig: Rig, body: bytes, ends: str) -> None:
    client = rig.client()
    for name in ("dev/#", "dev/a"):
        client.consumer(name, credit=0, name=name, **DURABLE)
    message = encode(Message(body=body, durable=True, ttl_s=10_000))
    client.producer("dev/a").send_raw(message)
    rig.crash() if ends == "crash" else rig.restart()
    rig.advance(100)
    client = rig.client()
    many, exact = (client.consumer(name, name=name, **DURABLE) for name in ("dev/#", "dev/a"))
    assert told_to(many) == ["dev/a"]
    assert told_to(exact) == [None]
    assert (many.received[0].message.body, exact.received[0].message.body) == (body, body)
    assert [9_800 < consumer.received[0].message.ttl_s <= 9_900 for consumer in (many, exact)] == [True, True]
    assert len(many.received[0].data) - len(exact.received[0].data) == len(
        with_delivery_address(message, b"dev/a")
    ) - len(message)


@pytest.mark.parametrize("body", [b"x" * 100, b"x" * (2 * LARGE_BYTES)], ids=["small", "large"])
def test_a_redelivery_has_the_address_and_its_delivery_count(rig: Rig, body: bytes) -> None:
    client = rig.client()
    many = client.consumer("dev/#", name="many", **DURABLE)
    exact = client.consumer("dev/a", name="exact", **DURABLE)
    client.producer("dev/a").send(body)
    for consumer in (many, exact):
        consumer.received[0].give(RELEASED)
        consumer.received[1].give(MODIFIED_FAILED)
    assert (told_to(many), many.counts) == (["dev/a"] * 3, [0, 0, 1])
    assert (told_to(exact), exact.counts) == ([None] * 3, [0, 0, 1])
    assert [received.message.body for received in many.received + exact.received] == [body] * 6


@pytest.mark.parametrize("body", [b"x" * 100, b"x" * (2 * LARGE_BYTES)], ids=["small", "large"])
def test_a_dead_letter_keeps_the_address_also_after_a_crash_and_a_move(rig: Rig, body: bytes) -> None:
    client = rig.client()
    many = client.consumer("dev/#", **DURABLE)
    client.producer("dev/a").send(body)
    many.received[0].give(rejected("amqp:not-allowed", "no"))
    rig.crash()
    dead = rig.client().consumer("dead")
    assert told_to(dead) == ["dev/a"]
    assert dead.received[0].message.body == body
    assert dead.received[0].message.annotations["x-opt-dead-letter-origin"] == "dev/#"


def test_a_producers_own_annotation_is_replaced_and_stays_for_exact_subscriptions(rig: Rig) -> None:
    client = rig.client()
    many, exact = client.consumer("dev/#", name="many"), client.consumer("dev/a", name="exact")
    message = proton.Message(body="x")
    message.instructions = {proton.symbol("x-opt-to"): "dev/false", proton.symbol("x-opt-more"): 7}
    raw = bytes(message.encode())
    client.producer("dev/a").send_raw(raw)
    assert told_to(many) == ["dev/a"]
    read = proton.Message()
    read.decode(many.received[0].data)
    assert read.instructions == {"x-opt-to": "dev/a", "x-opt-more": 7}
    assert exact.received[0].data == raw


def test_messages_evicted_from_memory_and_packed_keep_their_address(rig: Rig) -> None:
    client = rig.client()
    client.consumer("dev/#", credit=0, name="many", **DURABLE)
    client.consumer("dev/a", credit=0, name="exact", **DURABLE)
    producer = client.producer("dev/a")
    size = 60_000
    count = 2 * CACHE_BYTES // size
    for _ in range(count):
        producer.send_raw(encode(Message(body=bytes(size))), is_settled=True)
    many = client.consumer("dev/#", credit=count, name="many", **DURABLE)
    exact = client.consumer("dev/a", credit=count, name="exact", **DURABLE)
    assert told_to(many) == ["dev/a"] * count
    assert told_to(exact) == [None] * count


def test_delivery_annotations_longer_than_one_read_from_the_disk_come_whole(rig: Rig) -> None:
    client = rig.client()
    many, exact = (client.consumer(name, name=name, **DURABLE) for name in ("dev/#", "dev/a"))
    message = proton.Message(body="x" * 300_000)
    message.instructions = {proton.symbol("x-opt-more"): "m" * 130_000, proton.symbol("x-opt-to"): "false"}
    raw = bytes(message.encode())
    client.producer("dev/a").send_raw(raw)
    assert exact.received[0].data == raw
    assert many.received[0].data == with_delivery_address(raw, b"dev/a")


def test_the_address_of_another_space_is_told_by_its_name_in_the_space() -> None:
    assert BrokerAddress(Address("acme", "dev/a"), BrokerAddressKind.TOPIC).published == b"dev/a"
    assert BrokerAddress(Address("", "orders"), BrokerAddressKind.QUEUE).published is None


# The field `to`
@pytest.mark.parametrize("body", [b"x" * 100, b"x" * (2 * LARGE_BYTES)], ids=["small", "large"])
@pytest.mark.parametrize("to", [None, "", "elsewhere"])
@pytest.mark.parametrize("topic", ["dev/a", "told/a"])
def test_an_empty_to_is_filled_in_only_where_the_topology_says_so(
    rig: Rig, topic: str, to: str | None, body: bytes
) -> None:
    client = rig.client()
    hearers = [client.consumer(name, name=name) for name in (topic, topic.replace("/a", "/#"))]
    message = encode(Message(body=body, to=to))
    client.producer(topic).send_raw(message)
    expected = "told/a" if topic == "told/a" and not to else to
    assert [hearer.received[0].message.to for hearer in hearers] == [expected, expected]
    assert [hearer.received[0].message.body for hearer in hearers] == [body, body]
    if expected == to:
        assert hearers[0].received[0].data == message


# Operators
@pytest.mark.parametrize("body", [b"x" * 100, b"x" * (2 * LARGE_BYTES)], ids=["small", "large"])
def test_a_dump_of_the_store_has_the_message_and_its_address(rig: Rig, body: bytes) -> None:
    client = rig.client()
    client.consumer("dev/#", credit=0, name="many", **DURABLE)
    client.producer("dev/a").send(body)
    rig.restart()
    rig.store.close()
    with reading(rig.data) as store:
        (stored,) = stored_messages(store, "dev/#")
        assert not stored.is_damaged
        assert stored.published_to == "dev/a"
