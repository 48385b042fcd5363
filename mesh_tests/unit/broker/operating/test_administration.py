"""What an operator may do to the queues of a broker: look, create, delete, purge."""

import json
from typing import Any

import pytest

from broker.operating import administration
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.operator import DURABLE, Operator, subscribe
from mesh_tests.unit.broker.rig import Consumer, Rig
from wire.delivery import ACCEPTED, MODIFIED_FAILED, OutcomeCode
from wire.endpoint import Peer
from wire.transport.tls import Role


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "PART_MESSAGES", 2)
    monkeypatch.setattr(administration, "STEP_QUEUES", 2)


def fill(rig: Rig, count: int, address: str = "orders") -> None:
    """From a client that leaves."""
    client = rig.client("filler")
    producer = client.producer(address)
    for body in range(count):
        producer.send(body)
    client.vanish()


def left(rig: Rig, address: str = "orders") -> list[Any]:
    return rig.client("who takes what is left").consumer(address).bodies


def why_detached(consumer: Consumer) -> tuple[bool, str | None]:
    assert consumer.detached is not None
    closed, error = consumer.detached
    return closed, error.condition if error is not None else None


# Looking


def test_a_list_has_every_queue_and_subscription_with_its_counts(rig: Rig) -> None:
    fill(rig, 3)
    reader = subscribe(rig, "one")
    consumer = rig.client().consumer("orders", credit=2)
    consumer.received[0].give(ACCEPTED)
    (part,) = Operator(rig).do("list")
    orders, news, answers = part["queues"]
    assert (orders["address"], orders["kind"], orders["is_durable"], orders["subscriber"]) == (
        "orders",
        "queue",
        True,
        None,
    )
    assert (orders["available_count"], orders["acquired_count"], orders["consumer_count"]) == (1, 1, 1)
    assert (orders["enqueued_total"], orders["departed_total"]["accepted"]) == (3, 1)
    assert orders["size_bytes"] > 0
    assert (news["address"], news["kind"], news["subscriber"]) == ("news.#", "subscription", reader)
    assert (answers["kind"], answers["is_durable"]) == ("temporary queue", False)


def test_a_long_list_comes_in_parts(rig: Rig, small_steps: None) -> None:
    for name in "abc":
        subscribe(rig, name)
    parts = Operator(rig).do("list")
    assert [len(part["queues"]) for part in parts] == [2, 2]


def test_a_queue_is_shown_with_its_first_messages_whoever_has_them(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    for body in "abc":
        producer.send(body)
    producer.send("short", ttl_s=100)
    consumer = client.consumer("orders", credit=2)
    consumer.received[1].give(MODIFIED_FAILED)
    (part,) = Operator(rig).do("show", address="orders", messages=4)
    (shown,) = part["queues"]
    assert [(message["number"], message["state"], message["delivery_count"]) for message in shown["messages"]] == [
        (1, "acquired", 0),
        (2, "available", 1),
        (3, "available", 0),
        (4, "available", 0),
    ]
    *lasting, short = [message["expires_at"] for message in shown["messages"]]
    assert lasting == [None] * 3
    assert short.startswith("2023-11-14T22:31:40")
    (part,) = Operator(rig, "another").do("show", address="orders", messages=1)
    assert len(part["queues"][0]["messages"]) == 1


@pytest.mark.parametrize("address", ["news.#", "news.sport"])
def test_a_topic_is_shown_as_those_who_hear_it(rig: Rig, address: str) -> None:
    readers = [subscribe(rig, "all"), subscribe(rig, "sport", "news.sport")]
    other = subscribe(rig, "art", "news.art")
    fill(rig, 1, "news.sport")
    (part,) = Operator(rig).do("show", address=address)
    expected = [*readers, other] if address == "news.#" else readers
    assert [queue["subscriber"] for queue in part["queues"]] == expected
    assert [len(queue["messages"]) for queue in part["queues"]][:2] == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"address": "orders"}, "there is no queue 'orders' yet: its first use makes it, or `create`"),
        ({"address": "elsewhere"}, "no queue or subscription 'elsewhere' on this broker"),
        ({"address": "news.x"}, "no durable subscription to 'news.x' on this broker"),
        ({"address": "news.#", "subscriber": "a|b"}, "no subscription of 'a|b' to 'news.#' on this broker"),
        ({"address": "orders", "messages": 1001}, "expected 0 to 1000 messages to show, got 1001"),
    ],
)
def test_what_is_not_there_is_not_shown(rig: Rig, arguments: dict[str, Any], reason: str) -> None:
    assert Operator(rig).refusal("show", **arguments) == reason


# Creating and deleting


def test_a_created_queue_is_on_disk_before_anybody_is_told(rig: Rig) -> None:
    operator = Operator(rig)
    rig.is_disk_held = True
    operator.send(json.dumps({"op": "create", "address": "orders"}))
    rig.advance(1)
    assert operator.answers.received == []
    rig.is_disk_held = False
    rig.run()
    assert len(operator.answers.received) == 1
    rig.crash()
    assert [queue.address for queue in rig.snapshot().queues] == ["orders"]


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("elsewhere", "the topology has no queue 'elsewhere' on this broker"),
        ("news.x", "'news.x' is a topic, expected a queue: subscribers make the subscriptions of a topic"),
        ("news.#", "'news.#' has wildcards: expected the name of one queue"),
        ("_amqpmesh/broker/b1/probe", "'_amqpmesh/broker/b1/probe' is a probe queue, expected a durable queue"),
    ],
)
def test_only_what_the_topology_keeps_here_is_created(rig: Rig, address: str, reason: str) -> None:
    assert Operator(rig).refusal("create", address=address) == reason


def test_a_queue_that_is_there_is_not_created_again(rig: Rig) -> None:
    fill(rig, 1)
    assert Operator(rig).refusal("create", address="amqp:/orders") == "queue 'orders' already exists"


def test_an_empty_queue_is_deleted_for_good(rig: Rig) -> None:
    operator = Operator(rig)
    operator.do("create", address="orders")
    assert operator.count("delete", address="orders") == 0
    rig.crash()
    assert rig.snapshot().queues == ()


def test_a_queue_in_use_is_not_deleted_without_force(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("one")
    client.consumer("orders", credit=0)
    reason = Operator(rig).refusal("delete", address="orders")
    assert reason == (
        "queue 'orders' still has 1 message, 1 consumer, 1 producer: expected 'force' to delete it with them"
    )
    assert left(rig) == ["one"]


def test_a_message_on_its_way_to_the_disk_keeps_a_queue_from_being_deleted(rig: Rig) -> None:
    operator = Operator(rig)
    operator.do("create", address="orders")
    sender = rig.client().producer(None)
    rig.is_disk_held = True
    sender.send("coming", to="orders")
    operator.send(json.dumps({"op": "delete", "address": "orders"}))
    rig.node.on_time(rig.now)
    rig.is_disk_held = False
    rig.run()
    assert "has 1 message" in operator.answers.received[-1].message.body
    assert left(rig) == ["coming"]


def test_by_force_everybody_is_detached_and_told_why(rig: Rig) -> None:
    client = rig.client()
    producer, consumer = client.producer("orders"), client.consumer("orders", credit=1)
    for body in range(3):
        producer.send(body)
    assert Operator(rig).count("delete", address="orders", force=True) == 3
    assert why_detached(consumer) == (True, "amqp:resource-deleted")
    assert producer.detached is not None
    assert producer.detached[1] is not None
    assert producer.detached[1].condition == "amqp:resource-deleted"
    assert held_by(rig.store.load()).messages == []
    assert held_by(rig.store.load()).queues == []


def test_nobody_is_told_of_a_deletion_before_it_is_on_disk(rig: Rig) -> None:
    consumer = rig.client().consumer("orders")
    operator = Operator(rig)
    rig.is_disk_held = True
    operator.send(json.dumps({"op": "delete", "address": "orders", "force": True}))
    rig.node.on_time(rig.now)
    rig.commit()
    rig.node.on_time(rig.now)
    rig.run_now()
    assert rig.snapshot().queues[0].address != "orders"
    assert consumer.detached is None
    rig.is_disk_held = False
    rig.run()
    assert consumer.detached is not None


def test_a_subscription_is_deleted_by_the_name_of_its_subscriber(rig: Rig) -> None:
    readers = [subscribe(rig, "one"), subscribe(rig, "two")]
    operator = Operator(rig)
    reason = f"'news.#' is a topic: name the subscriber of a subscription, one of {', '.join(readers)}"
    assert operator.refusal("delete", address="news.#") == reason
    assert operator.count("delete", address="news.#", subscriber=readers[0]) == 0
    assert [queue.subscriber for queue in rig.snapshot().queues if queue.is_durable] == [readers[1]]


def test_a_temporary_queue_is_left_to_those_who_use_it(rig: Rig) -> None:
    operator = Operator(rig)
    reason = operator.refusal("delete", address=operator.reply_to, force=True)
    assert reason == f"temporary queue {operator.reply_to!r} ends with its clients: it cannot be deleted"


# Purging


def test_a_purge_takes_what_waits_and_leaves_what_a_consumer_has(rig: Rig) -> None:
    fill(rig, 5)
    consumer = rig.client().consumer("orders", credit=2)
    assert Operator(rig).count("purge", address="orders") == 3
    assert rig.queue("orders").queue.departed_total["purged"] == 3
    consumer.received[0].give(MODIFIED_FAILED)
    rig.crash()
    assert sorted(left(rig)) == [0, 1]


def test_a_purge_goes_on_step_by_step_and_leaves_what_came_after_it_began(rig: Rig, small_steps: None) -> None:
    fill(rig, 5)
    producer = rig.client().producer("orders")
    operator = Operator(rig)
    rig.is_disk_held = True
    operator.send(json.dumps({"op": "purge", "address": "orders"}))
    rig.node.on_time(rig.now)
    assert rig.queue("orders").queue.available_count == 3
    rig.is_disk_held = False
    producer.send("later")
    answers = [json.loads(received.message.body) for received in operator.answers.received]
    assert [answer["purge"]["messages"] for answer in answers] == [2, 2, 1]
    assert left(rig) == ["later"]


def test_what_consumers_take_during_a_purge_is_not_taken_from_what_comes_later(rig: Rig, small_steps: None) -> None:
    fill(rig, 4)
    client = rig.client()
    producer, consumer = client.producer("orders"), client.consumer("orders", credit=0)
    operator = Operator(rig)
    rig.is_disk_held = True
    operator.send(json.dumps({"op": "purge", "address": "orders"}))
    rig.node.on_time(rig.now)
    consumer.link.grant(1)
    producer.send("later")
    rig.is_disk_held = False
    rig.run()
    consumer.link.grant(10)
    rig.run()
    assert consumer.bodies[-1] == "later"
    assert rig.queue("orders").queue.departed_total["purged"] + len(consumer.bodies) == 5


def test_a_purge_ends_with_who_asked_for_it(rig: Rig, small_steps: None) -> None:
    fill(rig, 6)
    operator = Operator(rig)
    rig.is_disk_held = True
    operator.send(json.dumps({"op": "purge", "address": "orders"}))
    rig.node.on_time(rig.now)
    operator.client.vanish()
    rig.is_disk_held = False
    rig.run()
    assert left(rig) == [2, 3, 4, 5]


def test_a_subscription_is_purged_and_others_keep_theirs(rig: Rig) -> None:
    one, _ = subscribe(rig, "one"), subscribe(rig, "two")
    fill(rig, 3, "news.sport")
    assert Operator(rig).count("purge", address="news.#", subscriber=one) == 3
    assert rig.client("reader").consumer("news.#", name="one", **DURABLE).bodies == []
    assert rig.client("reader").consumer("news.#", name="two", **DURABLE).bodies == [0, 1, 2]


# Who asks, and how


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("x", 'cannot read the request: expected a string of JSON such as {"op": "list"}'),
        ([1], 'cannot read the request: expected a string of JSON such as {"op": "list"}'),
        (
            '{"op": "bake"}',
            "unknown op 'bake': expected one of list, show, browse, create, delete, purge, remove, move, redrive",
        ),
        ('{"op": "list", "all": true}', "unknown argument 'all' of list: expected no arguments"),
        ('{"op": "purge"}', "purge needs the argument 'address'"),
        (
            '{"op": "move", "source": "a", "target": "b", "count": true}',
            "argument 'count' of move: expected a whole number, got True",
        ),
        ('{"op": "delete", "address": 5}', "argument 'address' of delete: expected a string, got 5"),
    ],
)
def test_a_request_that_is_not_understood_is_rejected(rig: Rig, body: Any, reason: str) -> None:
    outcome = Operator(rig).send(body)
    assert outcome is not None
    assert outcome.kind is OutcomeCode.REJECTED
    assert outcome.error is not None
    assert outcome.error.description == reason


@pytest.mark.parametrize("reply_to", [None, "nobody", "orders"])
def test_a_request_that_cannot_be_answered_is_rejected(rig: Rig, reply_to: str | None) -> None:
    fill(rig, 1)
    outcome = Operator(rig).send('{"op": "purge", "address": "orders"}', reply_to=reply_to)
    assert outcome is not None
    assert outcome.error is not None
    assert outcome.error.condition == "amqp:not-found"
    assert left(rig) == [0]


def test_a_request_beyond_all_measure_ends_the_link(rig: Rig) -> None:
    operator = Operator(rig)
    operator.send(" " * 70_000)
    producer = operator._requests
    assert producer.detached is not None
    assert producer.detached[1] is not None
    assert producer.detached[1].condition == "amqp:link:message-size-exceeded"


@pytest.mark.parametrize(
    "peer",
    [
        Peer(is_mesh=True, mesh_role=Role.ROUTER, mesh_name="b1"),
        Peer(is_mesh=True, mesh_role=Role.BROKER, mesh_name="b2"),
        Peer(mesh_role=None),
    ],
    ids=["router", "another broker", "client"],
)
def test_only_operators_get_at_the_control_address(rig: Rig, peer: Peer) -> None:
    client = rig.client(peer=peer)
    requests = client.producer("_amqpmesh/control")
    assert requests.detached is not None
    assert requests.detached[1] is not None
    assert requests.detached[1].condition == "amqp:unauthorized-access"


@pytest.mark.parametrize(
    "peer",
    [
        Peer(is_mesh=True, mesh_role=Role.OPERATOR),
        Peer(is_mesh=True, mesh_role=Role.BROKER, mesh_name="b1"),
        Peer(is_mesh=True),
    ],
    ids=["operator", "the broker's own certificate", "plain text between nodes"],
)
def test_an_operator_gets_at_the_control_address(rig: Rig, peer: Peer) -> None:
    client = rig.client(peer=peer)
    assert client.producer("_amqpmesh/control").link.credit > 0


def test_nobody_receives_from_the_control_address(rig: Rig) -> None:
    assert why_detached(rig.client().consumer("_amqpmesh/control")) == (True, "amqp:not-found")
