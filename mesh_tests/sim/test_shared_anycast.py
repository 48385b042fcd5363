"""Messages to all addresses of an anycast pattern, over links without an address: what routers make for them, and how
the messages reach the consumers of each address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edge_and_brokers import mesh_with
from mesh_tests.sim.test_shared_patterns import rows, seen, send, settled
from wire.address_cache import IDLE_S
from wire.delivery import ACCEPTED, OutcomeCode

ADDRESSES = 500
LARGE = "x" * 300_000

DECLARED: dict[str, Any] = {
    "cmd.#": "anycast",
    "near.#": {"type": "anycast", "distribution": "closest"},
    "kept.#": {"type": "anycast", "fallback": "later"},
    "again.#": {"type": "anycast", "retransmit": True},
    "later": "queue",
}


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    return mesh_with(tmp_path, DECLARED)


def consume(mesh: SimMesh, router: str, *addresses: str, credit: int = 10, **more: Any) -> list[SimReceiver]:
    client = mesh.client(router, f"device at {router} for {addresses[0]} at {mesh.now}")
    receivers = [client.receiver(address, credit=credit, **more) for address in addresses]
    mesh.run_until(lambda: all(receiver.link.is_open for receiver in receivers))
    mesh.run(0.5)
    return receivers


def bodies(receiver: SimReceiver) -> list[str]:
    return [body for _, body in seen(receiver)]


def kinds(sender: SimSender) -> list[OutcomeCode]:
    return [sender.outcomes[tag].kind for tag in sorted(sender.outcomes)]


def used(mesh: SimMesh, router: str) -> dict[str, int]:
    """Addresses in use at a router, with the number of links of each; without the address that has a fallback queue."""
    return {address: count for address, count in rows(mesh, router).items() if address != "kept.#"}


def circuits(mesh: SimMesh, router: str) -> dict[str, int]:
    """The addresses with circuits that begin at a router, and how many each has."""
    return {each.address: each.circuits for each in mesh.routers[router].snapshot().addresses if each.circuits}


@pytest.mark.parametrize("place", ["r1", "r2"])
def test_the_addresses_with_consumers_at_one_router_have_the_circuit_of_one(mesh: SimMesh, place: str) -> None:
    addresses = [f"cmd.{number}" for number in range(ADDRESSES)]
    receivers = consume(mesh, "r3", *addresses)
    sender = mesh.client(place, "control").sender(None)
    for turn in range(3):
        for address in addresses:
            send(mesh, sender, address, str(turn))
    settled(mesh, sender)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    for address, receiver in zip(addresses, receivers, strict=True):
        assert seen(receiver) == [(address, "0"), (address, "1"), (address, "2")]
    assert used(mesh, place) == {"cmd.#": 2}
    assert used(mesh, "r3") == {"cmd.#": 1} | dict.fromkeys(addresses, 1)


def test_each_router_with_consumers_has_a_circuit_of_its_own(mesh: SimMesh) -> None:
    places = {f"cmd.{number}": ["r2", "r3"][number % 2] for number in range(20)}
    receivers = {address: consume(mesh, place, address)[0] for address, place in places.items()}
    sender = mesh.client("r1", "control").sender(None)
    for address in places:
        send(mesh, sender, address)
    settled(mesh, sender)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert all(len(receiver.messages) == 1 for receiver in receivers.values())
    assert [each.address for each in mesh.routers["r1"].snapshot().addresses] == ["cmd.#", "cmd.#"]


def test_addresses_with_several_routers_or_local_consumers_have_circuits_of_their_own(mesh: SimMesh) -> None:
    consume(mesh, "r2", "cmd.two")
    consume(mesh, "r3", "cmd.two", "cmd.one", "kept.1", "again.1", "near.1")
    consume(mesh, "r1", "cmd.local")
    sender = mesh.client("r1", "control").sender(None)
    for address in ("cmd.two", "cmd.one", "cmd.local", "kept.1", "again.1", "near.1"):
        send(mesh, sender, address)
    settled(mesh, sender)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert circuits(mesh, "r1") == {"cmd.#": 1, "near.#": 1, "cmd.two": 2, "kept.1": 1, "again.1": 1}


def test_a_consumer_without_credit_holds_up_its_own_messages_only(mesh: SimMesh) -> None:
    stuck, *others = consume(mesh, "r3", *[f"cmd.{number}" for number in range(100)], credit=0)
    for receiver in others:
        receiver.link.grant(100)
    mesh.run(0.5)
    sender = mesh.client("r1", "control").sender(None)
    for number in range(1_000):
        send(mesh, sender, f"cmd.{number % 100}", str(number))
    mesh.run(1)
    assert len(sender.open) == 10
    assert circuits(mesh, "r1") == {"cmd.#": 1, "cmd.0": 1}
    stuck.link.grant(100)
    settled(mesh, sender)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert bodies(stuck) == [str(number) for number in range(0, 1_000, 100)]


def test_an_address_shares_again_after_a_while_without_messages(mesh: SimMesh) -> None:
    stuck, _ = consume(mesh, "r3", "cmd.0", "cmd.1", credit=0)
    sender = mesh.client("r1", "control").sender(None)
    for number in range(5):
        send(mesh, sender, "cmd.0", str(number))
    mesh.run(1)
    assert circuits(mesh, "r1") == {"cmd.#": 1, "cmd.0": 1}
    stuck.link.grant(100)
    settled(mesh, sender)
    mesh.run(30)
    assert used(mesh, "r1") == {"cmd.#": 2}
    assert used(mesh, "r3") == {"cmd.#": 1, "cmd.0": 1, "cmd.1": 1}
    send(mesh, sender, "cmd.0", "5")
    settled(mesh, sender)
    assert bodies(stuck) == [str(number) for number in range(6)]
    assert used(mesh, "r1") == {"cmd.#": 2}


def test_addresses_that_nobody_uses_are_forgotten(mesh: SimMesh) -> None:
    addresses = [f"cmd.{number}" for number in range(100)]
    consume(mesh, "r3", *addresses)
    sender = mesh.client("r1", "control").sender(None)
    for address in addresses:
        send(mesh, sender, address)
    settled(mesh, sender)
    router = mesh.routers["r1"]
    assert len(router._services.pattern_addresses) == len(router._addresses.sharing("").groups) == 100
    mesh.run(2 * IDLE_S + 1)
    assert len(router._services.pattern_addresses) == len(router._addresses.sharing("").groups) == 0


def test_messages_follow_a_consumer_that_moves(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "control").sender(None)
    receivers = []
    for turn, place in enumerate(["r3", "r2", "r1", "r3", "e1", "r2"]):
        client = mesh.client(place, f"device {turn}")
        receivers.append(client.receiver("cmd.1", credit=100))
        mesh.run(1)
        for number in range(5):
            send(mesh, sender, "cmd.1", f"{turn} {number}")
        settled(mesh, sender)
        mesh.cut(client.pipe)
        mesh.run(1)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert [bodies(receiver) for receiver in receivers] == [
        [f"{turn} {number}" for number in range(5)] for turn in range(6)
    ]


def test_without_a_consumer_messages_are_released(mesh: SimMesh) -> None:
    client = mesh.client("r3", "device")
    client.receiver("cmd.1", credit=2)
    mesh.run(1)
    sender = mesh.client("r1", "control").sender(None)
    send(mesh, sender, "cmd.1")
    settled(mesh, sender)
    mesh.cut(client.pipe)
    mesh.run(3)
    send(mesh, sender, "cmd.1")
    send(mesh, sender, "cmd.2")
    settled(mesh, sender)
    assert kinds(sender) == [OutcomeCode.ACCEPTED, OutcomeCode.RELEASED, OutcomeCode.RELEASED]


def test_large_and_presettled_messages_keep_their_places(mesh: SimMesh) -> None:
    receiver, other = consume(mesh, "r3", "cmd.1", "cmd.2", credit=100)
    sender = mesh.client("r1", "control").sender(None)
    sent = []
    for number in range(30):
        mesh.run_until(lambda: sender.link.credit > 0)
        sent.append((LARGE if number % 7 == 3 else "") + str(number))
        sender.send(Message(address="cmd.1", body=sent[-1]).encode(), settled=number % 7 == 5)
        send(mesh, sender, "cmd.2", str(number))
    settled(mesh, sender)
    mesh.run(1)
    assert bodies(receiver) == sent
    assert bodies(other) == [str(number) for number in range(30)]
    assert set(sender.outcomes.values()) == {ACCEPTED}
