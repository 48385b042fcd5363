"""Messages to all addresses of a topic's pattern, over links without an address: what routers make for them, and how
the messages arrive."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edge_and_brokers import mesh_with
from wire.address_cache import IDLE_S
from wire.delivery import ACCEPTED, OutcomeCode

ADDRESSES = 1_000
LARGE = "x" * 200_000


DECLARED: dict[str, Any] = {
    "dev.#": "topic",
    "lab.#": {"type": "topic", "broker": "b2"},
    "dev.jobs.#": "queue",
    "rpc.#": "anycast",
}


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    return mesh_with(tmp_path, DECLARED)


def send(mesh: SimMesh, sender: SimSender, address: str, body: str = "x") -> None:
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(Message(address=address, body=body).encode())


def settled(mesh: SimMesh, *senders: SimSender) -> None:
    mesh.run_until(lambda: not any(sender.open for sender in senders))


def subscribe(mesh: SimMesh, router: str, filter_: str, user: str | None = None) -> SimReceiver:
    receiver = mesh.client(router, f"reader of {filter_}", user=user).receiver(filter_, credit=100_000)
    mesh.run_until(lambda: receiver.link.is_open)
    return receiver


def rows(mesh: SimMesh, router: str) -> dict[str, int]:
    """Addresses in use at a router, with the number of links of each."""
    return {each.address: each.takers + each.inlets for each in mesh.routers[router].snapshot().addresses}


def seen(receiver: SimReceiver) -> list[tuple[str, str]]:
    messages = []
    for data in receiver.messages:
        message = Message()
        message.decode(data)
        messages.append((message.address, message.body))
    return messages


@pytest.mark.parametrize("place", ["r3", "r1", "e1"])
def test_a_thousand_addresses_of_a_pattern_have_the_links_of_one(mesh: SimMesh, place: str) -> None:
    receiver = subscribe(mesh, "r2", "dev.#")
    sender = mesh.client(place, "devices").sender(None)
    for number in range(ADDRESSES):
        send(mesh, sender, f"dev.{number}", str(number))
    settled(mesh, sender)
    mesh.run(1)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert seen(receiver) == [(f"dev.{number}", str(number)) for number in range(ADDRESSES)]
    assert rows(mesh, place) == {"dev.#": 2}
    assert rows(mesh, "r3") == {"dev.#": 2}


def test_each_message_reaches_the_subscriptions_of_its_own_address(mesh: SimMesh) -> None:
    everything, some, one = (subscribe(mesh, "r1", filter_) for filter_ in ("dev.#", "dev.*.up", "dev.7.up"))
    sender = mesh.client("r2", "devices").sender(None)
    for number in range(20):
        send(mesh, sender, f"dev.{number}.up")
        send(mesh, sender, f"dev.{number}.down")
    settled(mesh, sender)
    mesh.run(1)
    assert len(seen(everything)) == 40
    assert [address for address, _ in seen(some)] == [f"dev.{number}.up" for number in range(20)]
    assert [address for address, _ in seen(one)] == ["dev.7.up"]


def test_patterns_of_other_brokers_and_types_have_links_of_their_own(mesh: SimMesh) -> None:
    """`dev.jobs.#` is a queue below the topic `dev.#`, so the links of the queues are not those of the topics."""
    sender = mesh.client("r1", "devices").sender(None)
    lab = subscribe(mesh, "r1", "lab.#")
    for address in ("dev.1", "lab.1", "dev.jobs.1", "dev.2", "lab.2", "dev.jobs.2"):
        send(mesh, sender, address)
    settled(mesh, sender)
    mesh.run(1)
    assert sorted(rows(mesh, "r1")) == ["dev.#", "dev.jobs.#", "lab.#"]
    assert [address for address, _ in seen(lab)] == ["lab.1", "lab.2"]


def test_any_spelling_of_an_address_goes_to_the_same_topic(mesh: SimMesh) -> None:
    receiver = subscribe(mesh, "r1", "dev.a")
    sender = mesh.client("r1", "devices").sender(None)
    for address in ("dev.a", "amqp:dev.a", "amqp:/dev.a", "amqps://host/dev.a"):
        send(mesh, sender, address)
    settled(mesh, sender)
    mesh.run(1)
    assert len(receiver.messages) == 4
    assert rows(mesh, "r1")["dev.#"] == 2


def test_a_large_message_streams_to_its_own_address(mesh: SimMesh) -> None:
    receiver = subscribe(mesh, "r1", "dev.large")
    other = subscribe(mesh, "r1", "dev.small")
    sender = mesh.client("r1", "devices").sender(None)
    for number in range(3):
        send(mesh, sender, "dev.small", str(number))
        send(mesh, sender, "dev.large", LARGE + str(number))
    settled(mesh, sender)
    mesh.run(1)
    assert [body[len(LARGE) :] for _, body in seen(receiver)] == ["0", "1", "2"]
    assert [body for _, body in seen(other)] == ["0", "1", "2"]


def test_a_user_sends_only_where_the_user_may(tmp_path: Path) -> None:
    users = {
        "ann": {"send": ["dev.ann.#"], "receive": ["#"]},
        "bob": {"send": ["dev.#"], "receive": []},
    }
    mesh = mesh_with(tmp_path, DECLARED, users=users)
    receiver = subscribe(mesh, "r1", "dev.#", "ann")
    bob, ann = (mesh.client("r1", name, user=name).sender(None) for name in ("bob", "ann"))
    for address in ("dev.bob", "dev.ann.1", "dev.bob.2"):
        for sender in (bob, ann):
            send(mesh, sender, address, sender.link.endpoint.peer.user or "")
    settled(mesh, bob, ann)
    mesh.run(1)
    kinds = [outcome.kind for _, outcome in sorted(ann.outcomes.items(), key=lambda each: each[0])]
    assert kinds == [OutcomeCode.REJECTED, OutcomeCode.ACCEPTED, OutcomeCode.REJECTED]
    assert set(bob.outcomes.values()) == {ACCEPTED}
    assert len(receiver.messages) == 4


def test_addresses_that_nobody_uses_are_forgotten(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    subscribe(mesh, "r1", "dev.#")
    for number in range(100):
        send(mesh, sender, f"dev.{number}")
    settled(mesh, sender)
    router, broker = mesh.routers["r1"], mesh.brokers["b1"]
    assert len(router._services.pattern_addresses) == len(broker._message_store.published) == 100
    mesh.run(2 * IDLE_S + 1)
    assert len(router._services.pattern_addresses) == len(broker._message_store.published) == 0
    send(mesh, sender, "dev.1")
    settled(mesh, sender)
    assert set(sender.outcomes.values()) == {ACCEPTED}


@pytest.mark.parametrize("seed", range(12))
def test_in_a_random_life_each_copy_arrives_once_in_order_at_its_own_address(tmp_path: Path, seed: int) -> None:
    """Other subscriptions come and go meanwhile. Copies keep the order of each producer and address."""
    chance = random.Random(seed)
    mesh = mesh_with(tmp_path, DECLARED)
    readers = {
        filter_: subscribe(mesh, chance.choice(["r1", "r2", "r3"]), filter_)
        for filter_ in ("dev.#", "dev.*.up", "dev.3.#", "lab.#")
    }
    senders = [mesh.client(chance.choice(["r1", "r2", "r3", "e1"]), f"p{number}").sender(None) for number in range(4)]
    sent: dict[tuple[int, int], tuple[str, Any]] = {}
    for number in range(400):
        who = chance.randrange(len(senders))
        address = chance.choice(
            [f"dev.{chance.randrange(60)}.{chance.choice(['up', 'down'])}", f"lab.{chance.randrange(60)}"]
        )
        sender = senders[who]
        mesh.run_until(lambda sender=sender: sender.link.credit > 0)
        tag = sender.send(Message(address=address, body=f"{who} {number}").encode())
        sent[who, number] = (address, tag)
        if chance.random() < 0.1:
            mesh.run(chance.random() * 0.05)
        if chance.random() < 0.02:
            visitor = mesh.client("r1", f"visitor-{number}")
            visitor.receiver(f"dev.{chance.randrange(60)}.#", credit=10)
            mesh.run(0.05)
            mesh.cut(visitor.pipe)
    settled(mesh, *senders)
    mesh.run(1)
    accepted = {key for key, (_, tag) in sent.items() if senders[key[0]].outcomes[tag] == ACCEPTED}
    assert len(accepted) == len(sent)
    for filter_, reader in readers.items():
        matches = {
            "dev.#": lambda address: address.startswith("dev."),
            "dev.*.up": lambda address: address.startswith("dev.") and address.endswith(".up"),
            "dev.3.#": lambda address: address.startswith("dev.3."),
            "lab.#": lambda address: address.startswith("lab."),
        }[filter_]
        found = [(address, tuple(int(word) for word in body.split())) for address, body in seen(reader)]
        assert sorted(key for _, key in found) == sorted(key for key, (address, _) in sent.items() if matches(address))
        assert all(sent[key][0] == address for address, key in found)
        for who in range(len(senders)):
            for address in {each for each, _ in found}:
                own = [number for there, (sender, number) in found if sender == who and there == address]
                assert own == sorted(own)
