"""Clients that name a pattern instead of an address, at the routers of a mesh and at its edge routers."""

from pathlib import Path

import pytest
from proton import Message

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edges import QUEUES, with_brokers
from mesh_tests.sim.filter_lives import told
from router.events import AttachRefused
from wire.delivery import ACCEPTED, OutcomeCode
from wire.message import decode
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
PATTERNS = ("rpc.#", "near.*", "jobs.*", "parts.*")
COPIED = ("prices.#", "prices.*.eu", "weather.#")


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    return with_brokers(tmp_path, addresses=ADDRESSES)


@pytest.mark.parametrize("router", ["r1", "e1"])
def test_an_attach_to_a_pattern_is_refused_with_a_sentence_and_other_links_stay(mesh: SimMesh, router: str) -> None:
    client = mesh.client(router)
    stays = client.receiver("rpc.a")
    senders = {name: client.sender(name) for name in (*PATTERNS, *COPIED)}
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
def test_a_durable_receiver_of_a_pattern_that_nobody_copies_is_refused_too(mesh: SimMesh, name: str) -> None:
    receiver = mesh.client("r2", "app").receiver(
        name, name="own", durability=Durability.UNSETTLED_STATE, expiry=Expiry.NEVER
    )
    mesh.run_until(lambda: receiver.error is not None)
    assert receiver.error.condition == "amqp:not-allowed"


@pytest.mark.parametrize("router", ["r1", "e1"])
def test_a_filter_of_topics_and_multicast_together_is_refused_with_filters_that_work(
    mesh: SimMesh, router: str
) -> None:
    receiver, unknown = mesh.client(router).receiver("#"), mesh.client(router).receiver("other.#")
    mesh.run_until(lambda: receiver.error is not None and unknown.error is not None)
    assert receiver.error.condition == "amqp:not-allowed"
    assert receiver.error.description.startswith("no address of the topology covers the filter '#', which matches")
    assert receiver.error.description.endswith("such as 'news' or 'prices.#'")
    assert unknown.error.condition == "amqp:not-found"


@pytest.mark.parametrize("router", ["r1", "e1"])
def test_a_message_to_a_pattern_is_rejected_and_the_next_one_arrives(mesh: SimMesh, router: str) -> None:
    client = mesh.client(router)
    receiver = mesh.client("r3").receiver("rpc.a")
    sender = client.sender(None)
    mesh.run_until(lambda: sender.link.credit > 0)
    names = [*PATTERNS, *COPIED]
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


@pytest.mark.parametrize("size", [1, 200_000])
@pytest.mark.parametrize("router", ["r1", "r3", "e1"])
def test_a_topic_has_receivers_with_wildcards_who_know_the_address_of_each_message(
    mesh: SimMesh, router: str, size: int
) -> None:
    client = mesh.client(router)
    receiver, exact = client.receiver("weather.#"), client.receiver("weather.sea")
    sender, anonymous = mesh.client("r2").sender("weather.sea"), mesh.client("e1").sender(None)
    mesh.run_until(lambda: exact.link.is_open and sender.link.credit > 0 and anonymous.link.credit > 0)
    message = Message(body="c" * size).encode()
    mesh.send(sender, message)
    mesh.run_until(lambda: len(receiver.messages) == 1)
    mesh.send(anonymous, Message(address="amqp:/weather.lake", body="c" * size).encode())
    mesh.run_until(lambda: len(receiver.messages) == 2)
    assert told(receiver) == ["weather.sea", "weather.lake"]
    assert exact.messages == [message]


def test_a_durable_subscription_has_the_addresses_after_its_broker_was_killed(mesh: SimMesh) -> None:
    durable = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
    waits = mesh.client("r3", "app").receiver("weather.#", name="own", credit=0, **durable)
    sender = mesh.client("e1").sender(None)
    mesh.run_until(lambda: waits.link.is_open and sender.link.credit > 0)
    places = [f"weather.{number}" for number in range(20)]
    for place in places:
        sender.send(Message(address=place).encode())
    mesh.run_until(lambda: not sender.open)
    mesh.kill_broker("b1")
    mesh.run(1)
    mesh.start_broker("b1")
    waits.link.grant(100)
    mesh.run_until(lambda: len(waits.messages) == len(places))
    # A sender without an address keeps the order of each address only.
    assert sorted(told(waits)) == sorted(places)
    assert told(waits) == [str(decode(data).to) for data in waits.messages]
