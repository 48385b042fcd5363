"""Clients that name a pattern instead of an address, at the routers of a mesh and at its edge routers."""

from pathlib import Path

import pytest
from proton import Message

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edges import QUEUES, with_brokers
from router.events import AttachRefused
from wire.delivery import ACCEPTED, OutcomeCode
from wire.terminus import Durability, Expiry

ADDRESSES = {
    **QUEUES,
    "rpc.#": "anycast",
    "near.#": {"type": "anycast", "distribution": "closest"},
    "prices.#": "multicast",
    "jobs.*": {"type": "queue", "broker": "b1"},
    "parts.*": {"type": "queue", "brokers": ["b1", "b2"]},
    "weather.#": {"type": "topic", "broker": "b1"},
}
PATTERNS = ("rpc.#", "near.*", "prices.#", "prices.*.eu", "jobs.*", "parts.*")


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    return with_brokers(tmp_path, addresses=ADDRESSES)


@pytest.mark.parametrize("router", ["r1", "e1"])
def test_an_attach_to_a_pattern_is_refused_with_a_sentence_and_other_links_stay(mesh: SimMesh, router: str) -> None:
    client = mesh.client(router)
    stays = client.receiver("rpc.a")
    senders = {name: client.sender(name) for name in (*PATTERNS, "weather.#")}
    receivers = {name: client.receiver(name) for name in PATTERNS}
    refused = [*senders.items(), *receivers.items()]
    mesh.run_until(lambda: all(end.error is not None for _, end in refused))
    for name, end in refused:
        assert end.error.condition == "amqp:not-allowed"
        assert end.error.description.startswith(f"{name!r} has wildcards")
        assert "such as" in end.error.description
    assert stays.link.is_open
    told = [event for _, node, event in mesh.log if node == router and isinstance(event, AttachRefused)]
    assert [event.address for event in told] == [name for name, _ in refused]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_durable_receiver_of_a_pattern_that_is_no_topic_is_refused_too(mesh: SimMesh, name: str) -> None:
    receiver = mesh.client("r2", "app").receiver(
        name, name="own", durability=Durability.UNSETTLED_STATE, expiry=Expiry.NEVER
    )
    mesh.run_until(lambda: receiver.error is not None)
    assert receiver.error.condition == "amqp:not-allowed"


@pytest.mark.parametrize("router", ["r1", "e1"])
def test_a_message_to_a_pattern_is_rejected_and_the_next_one_arrives(mesh: SimMesh, router: str) -> None:
    client = mesh.client(router)
    receiver = mesh.client("r3").receiver("rpc.a")
    sender = client.sender(None)
    mesh.run_until(lambda: sender.link.credit > 0)
    names = [*PATTERNS, "weather.#"]
    for name in names:
        sender.send(Message(address=name).encode())
    sender.send(Message(address="rpc.a").encode())
    mesh.run_until(lambda: len(sender.outcomes) == len(names) + 1)
    *refused, accepted = (sender.outcomes[number] for number in sorted(sender.outcomes))
    for name, outcome in zip(names, refused, strict=True):
        assert outcome.kind is OutcomeCode.REJECTED
        assert outcome.error is not None
        assert outcome.error.condition == "amqp:not-allowed"
        assert outcome.error.description.startswith(f"{name!r} has wildcards: expected one address")
    assert accepted == ACCEPTED
    assert len(receiver.messages) == 1


@pytest.mark.parametrize("router", ["r3", "e1"])
def test_a_topic_has_receivers_with_wildcards(mesh: SimMesh, router: str) -> None:
    receiver = mesh.client(router).receiver("weather.#")
    sender = mesh.client("r2").sender("weather.sea")
    mesh.run_until(lambda: receiver.link.is_open and sender.link.credit > 0)
    mesh.send(sender, Message(body="calm").encode())
    mesh.run_until(lambda: len(receiver.messages) == 1)
