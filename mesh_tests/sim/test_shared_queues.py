"""Messages to all queues of a pattern, over links without an address: what nodes make for them, and what happens to
each message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from proton import Message

from addressing.address import Address
from broker.queueing.held_queue import HeldQueue
from mesh.simulation.clients import SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edge_and_brokers import mesh_with
from mesh_tests.sim.test_shared_patterns import rows, seen, send, settled
from wire.address_cache import IDLE_S
from wire.delivery import ACCEPTED, OutcomeCode

QUEUES = 1_000
USERS = {name: {"send": ["#"], "receive": ["#"]} for name in ("ann", "bob")}


DECLARED: dict[str, Any] = {
    "jobs.#": "queue",
    "few.#": {"type": "queue", "max_queues": 3},
    "old.#": {"type": "queue", "queue_expiry_s": 1000.0},
    "short.#": {"type": "queue", "max_messages": 2},
    "new.#": {"type": "queue", "max_messages": 2, "when_full": "drop-oldest"},
    "wide.#": {"type": "queue", "brokers": ["b1", "b2"]},
}


def made(tmp_path: Path, **more: Any) -> SimMesh:
    return mesh_with(tmp_path, DECLARED, **more)


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    return made(tmp_path)


def queue(mesh: SimMesh, address: str) -> HeldQueue | None:
    return mesh.brokers["b1"]._message_store.existing_queue(Address("", address))


def waiting(mesh: SimMesh) -> dict[str, int]:
    found = mesh.brokers["b1"].snapshot().queues
    return {each.address: each.queue.available_count for each in found if each.queue.available_count}


def kinds(sender: SimSender) -> list[OutcomeCode]:
    return [sender.outcomes[tag].kind for tag in sorted(sender.outcomes)]


@pytest.mark.parametrize("place", ["r3", "r1", "e1"])
def test_a_thousand_queues_of_a_pattern_have_the_links_of_one(mesh: SimMesh, place: str) -> None:
    sender = mesh.client(place, "devices").sender(None)
    for number in range(QUEUES):
        send(mesh, sender, f"jobs.{number}", str(number))
    settled(mesh, sender)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert waiting(mesh) == {f"jobs.{number}": 1 for number in range(QUEUES)}
    assert rows(mesh, place) == {"jobs.#": 2}
    assert rows(mesh, "r3") == {"jobs.#": 2}
    receiver = mesh.client("r2", "worker").receiver("jobs.7", credit=10)
    mesh.run(1)
    assert seen(receiver) == [("jobs.7", "7")]


def test_a_queue_of_two_brokers_has_links_of_its_own(
    mesh: SimMesh,
) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    for address in ("new.1", "new.2", "wide.1", "wide.2", "jobs.1"):
        for number in range(3):
            send(mesh, sender, address, str(number))
    settled(mesh, sender)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert sorted(rows(mesh, "r1")) == ["jobs.#", "new.#", "wide.1", "wide.2"]
    assert waiting(mesh)["new.1"] == waiting(mesh)["new.2"] == 2


@pytest.mark.parametrize("place", ["r3", "r1", "e1"])
def test_each_user_has_links_of_its_own_and_owns_the_queues_it_made(tmp_path: Path, place: str) -> None:
    mesh = made(tmp_path, users=USERS)
    ann, bob = (mesh.client(place, name, user=name).sender(None) for name in ("ann", "bob"))
    for number in range(3):
        for sender, name in ((ann, "ann"), (bob, "bob")):
            send(mesh, sender, f"jobs.{name}.{number}")
            send(mesh, sender, "jobs.both")
    settled(mesh, ann, bob)
    addresses = [each.address for each in mesh.routers[place].snapshot().addresses if each.takers]
    assert addresses == ["jobs.#", "jobs.#"]
    for name in ("ann", "bob"):
        assert {queue(mesh, f"jobs.{name}.{number}").owner for number in range(3)} == {name}
    assert waiting(mesh)["jobs.both"] == 6


def test_an_edge_router_asks_for_a_pattern_as_long_as_one_of_its_users_sends(tmp_path: Path) -> None:
    mesh = made(tmp_path, users=USERS)
    ann, bob = (mesh.client("e1", name, user=name) for name in ("ann", "bob"))
    senders = [client.sender(None) for client in (ann, bob)]
    for sender in senders:
        send(mesh, sender, "jobs.1")
    settled(mesh, *senders)
    mesh.cut(ann.pipe)
    mesh.run(60)
    assert mesh.routers["r1"]._addresses._edges.asking("M0jobs.#") == {"e1"}
    # A cut of the uplink makes the edge router ask anew, for what it still asks.
    mesh.cut_trunk("e1", "r1")
    mesh.link("e1", "r1")
    mesh.run(5)
    send(mesh, senders[1], "jobs.1")
    settled(mesh, senders[1])
    assert kinds(senders[1]) == [OutcomeCode.ACCEPTED] * 2
    mesh.cut(bob.pipe)
    mesh.run(60)
    assert rows(mesh, "e1") == {}
    assert rows(mesh, "r3") == {}


def test_a_limit_of_queues_rejects_the_message_and_leaves_the_link_to_the_others(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    for number in range(5):
        send(mesh, sender, f"few.{number}")
    send(mesh, sender, "few.1")
    settled(mesh, sender)
    assert kinds(sender) == [OutcomeCode.ACCEPTED] * 3 + [OutcomeCode.REJECTED] * 2 + [OutcomeCode.ACCEPTED]
    errors = [outcome.error for outcome in sender.outcomes.values() if outcome.error is not None]
    assert {error.condition for error in errors} == {"amqp:resource-limit-exceeded"}
    assert "there are 3 queues under 'few.#'" in errors[0].description
    assert rows(mesh, "r1") == {"few.#": 2}


@pytest.mark.parametrize("pause_s", [8.0, 90.0])
def test_a_queue_counts_as_used_by_messages_and_expires_after_the_last(mesh: SimMesh, pause_s: float) -> None:
    """The queue has no link ever, and is empty most of the time, since its messages expire at once."""
    sender = mesh.client("r1", "devices").sender(None)
    first = None
    for _ in range(int(1_500 / pause_s)):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(Message(address="old.1", body="x", ttl=1).encode())
        mesh.run(pause_s)
        assert waiting(mesh) == {}
        first = first or queue(mesh, "old.1")
        assert queue(mesh, "old.1") is first
    mesh.run(980 - pause_s)
    assert queue(mesh, "old.1") is first
    mesh.run(50)
    assert queue(mesh, "old.1") is None


def test_addresses_that_nobody_uses_are_forgotten(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    for number in range(100):
        send(mesh, sender, f"jobs.{number}")
    settled(mesh, sender)
    router, broker = mesh.routers["r1"], mesh.brokers["b1"]
    assert len(router._services.pattern_addresses) == len(broker._message_store.used) == 100
    mesh.run(2 * IDLE_S + 1)
    assert len(router._services.pattern_addresses) == len(broker._message_store.used) == 0
    send(mesh, sender, "jobs.1")
    settled(mesh, sender)
    assert set(sender.outcomes.values()) == {ACCEPTED}


def test_a_message_after_the_deletion_of_its_queue_makes_the_queue_again(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    send(mesh, sender, "jobs.1", "old")
    settled(mesh, sender)
    store = mesh.brokers["b1"]._message_store
    store.delete(queue(mesh, "jobs.1"))
    assert queue(mesh, "jobs.1") is None
    send(mesh, sender, "jobs.1", "new")
    settled(mesh, sender)
    assert waiting(mesh) == {"jobs.1": 1}
    receiver = mesh.client("r1", "worker").receiver("jobs.1", credit=10)
    mesh.run(1)
    assert seen(receiver) == [("jobs.1", "new")]
