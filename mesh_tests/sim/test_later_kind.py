"""Does a kind of address that no router has seen need anything but its traits?

The topology has the kinds of `LaterKind` in place of today's. No code of a node is changed for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from addressing.book import AddressBook
from addressing.kinds import AddressTraits, Trait
from addressing.topology.model import Topology
from mesh.simulation.clients import SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from wire.delivery import ACCEPTED
from wire.terminus import Durability, Expiry

PLACES = [("r1", "r2"), ("r2", "r2"), ("e1", "r1"), ("r2", "e1")]
"""Routers of (producer, consumers)."""


class LaterKind(AddressTraits):
    SERVICE = "service", Trait.PASSED
    BROADCAST = "broadcast", Trait.COPIED
    MAILBOX = "mailbox", Trait.STORED
    FEED = "feed", Trait.STORED | Trait.COPIED
    RETIRED = "retired", Trait.REFUSED


LATER = {
    "calls": LaterKind.SERVICE,
    "prices": LaterKind.BROADCAST,
    "boxes": LaterKind.MAILBOX,
    "sharded": LaterKind.MAILBOX,
    "news": LaterKind.FEED,
    "old": LaterKind.RETIRED,
}


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    """e1 - r1 - r2, with b1 at r1 and b2 at r2."""
    today = {"calls": "anycast", "prices": "multicast", "boxes": "queue", "news": "topic", "old": "unavailable"}
    topology = Topology.model_validate(
        {
            "mesh": "later",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}, "e1": {"mode": "edge", "connect": ["r1"]}},
            "brokers": {"b1": {"data": "b1", "routers": ["r1"]}, "b2": {"data": "b2", "routers": ["r2"]}},
            "default_broker": "b1",
            "addresses": {**today, "sharded": {"type": "queue", "brokers": ["b1", "b2"]}},
        }
    )
    for address, kind in LATER.items():
        topology.addresses[address] = topology.addresses[address].model_copy(update={"type": kind})
    mesh = SimMesh(topology, tmp_path)
    mesh.converge()
    mesh.run(0.5)
    return mesh


def send(mesh: SimMesh, router: str, address: str, count: int = 6) -> list[int]:
    sender = mesh.client(router, "producer").sender(address)
    for number in range(count):
        mesh.send(sender, Message(body=number).encode())
    mesh.run_until(lambda: len(sender.outcomes) == count)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    return list(range(count))


def numbers(receiver: SimReceiver) -> list[int]:
    found = []
    for data in receiver.messages:
        message = Message()
        message.decode(data)
        found.append(message.body)
    return found


def test_the_topology_of_these_tests_has_no_kind_of_today(mesh: SimMesh) -> None:
    policies = [AddressBook(mesh.topology).resolve(address) for address in LATER]
    assert [policy.kind for policy in policies if policy is not None] == list(LATER.values())


@pytest.mark.parametrize(("producer", "consumers"), PLACES)
@pytest.mark.parametrize("address", ["calls", "boxes", "sharded"])
def test_each_message_of_a_kind_without_copies_reaches_one_consumer(
    mesh: SimMesh, address: str, producer: str, consumers: str
) -> None:
    receivers = [mesh.client(consumers, f"c{number}").receiver(address) for number in range(2)]
    mesh.run(0.5)
    sent = send(mesh, producer, address)
    mesh.run_until(lambda: sum(len(receiver.messages) for receiver in receivers) == len(sent))
    assert sorted(number for receiver in receivers for number in numbers(receiver)) == sent


@pytest.mark.parametrize(("producer", "consumers"), PLACES)
@pytest.mark.parametrize("address", ["prices", "news"])
def test_each_message_of_a_kind_with_copies_reaches_every_consumer(
    mesh: SimMesh, address: str, producer: str, consumers: str
) -> None:
    receivers = [mesh.client(consumers, f"c{number}").receiver(address) for number in range(2)]
    mesh.run(0.5)
    sent = send(mesh, producer, address)
    mesh.run_until(lambda: all(len(receiver.messages) == len(sent) for receiver in receivers))
    assert [numbers(receiver) for receiver in receivers] == [sent, sent]


@pytest.mark.parametrize("address", ["boxes", "sharded", "news"])
def test_a_broker_keeps_messages_of_a_stored_kind_until_a_consumer_comes(mesh: SimMesh, address: str) -> None:
    durable = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER, "name": "mine"}
    lasting: dict[str, Any] = durable if address == "news" else {}
    if lasting:
        subscriber = mesh.client("r2", "c")
        subscriber.receiver(address, **lasting)
        mesh.run(0.5)
        mesh.cut(subscriber.pipe)
    sent = send(mesh, "e1", address)
    receiver = mesh.client("r2", "c").receiver(address, **lasting)
    mesh.run_until(lambda: len(receiver.messages) == len(sent))
    assert sorted(numbers(receiver)) == sent


@pytest.mark.parametrize("router", ["r2", "e1"])
def test_a_refused_kind_is_refused(mesh: SimMesh, router: str) -> None:
    client = mesh.client(router)
    ends = [client.sender("old"), client.receiver("old")]
    mesh.run(0.5)
    assert [end.error.condition for end in ends] == ["amqp:not-found"] * 2
