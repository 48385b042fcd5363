"""Messages to all addresses of an anycast pattern, over links without an address: what routers make for them, and how
the messages reach the consumers of each address."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edge_and_brokers import mesh_with
from mesh_tests.sim.test_shared_patterns import rows, seen, send, settled
from wire.address_cache import IDLE_S
from wire.delivery import ACCEPTED, RELEASED, OutcomeCode

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
    egress = next(
        entry.group for key, entry in mesh.routers["r3"]._addresses._entries.items() if key[0].name == "cmd.#"
    )
    for count in (100, 0):
        caches = router._services.pattern_addresses, router._addresses.sharing("").groups, egress.known
        assert [len(cache) for cache in caches] == [count] * 3
        mesh.run(2 * IDLE_S + 1)


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


def test_presettled_messages_come_presettled_and_keep_their_places(mesh: SimMesh) -> None:
    (receiver,) = consume(mesh, "r3", "cmd.1", credit=100)
    sender = mesh.client("r1", "control").sender(None)
    for number in range(20):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(Message(address="cmd.1", body=str(number)).encode(), settled=number % 5 == 3)
    settled(mesh, sender)
    mesh.run(1)
    assert bodies(receiver) == [str(number) for number in range(20)]
    assert receiver.came_settled == [number % 5 == 3 for number in range(20)]


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
    assert receiver.came_settled == [number % 7 == 5 for number in range(30)]
    assert bodies(other) == [str(number) for number in range(30)]
    assert set(sender.outcomes.values()) == {ACCEPTED}


@pytest.mark.parametrize("place", ["r2", "r1"])
def test_a_message_that_waits_at_one_router_goes_to_a_consumer_elsewhere(mesh: SimMesh, place: str) -> None:
    (stuck,) = consume(mesh, "r3", "cmd.1", credit=0)
    sender = mesh.client("r1", "control").sender(None)
    for number in range(5):
        send(mesh, sender, "cmd.1", str(number))
    mesh.run(1)
    assert len(sender.open) == 5
    (receiver,) = consume(mesh, place, "cmd.1", credit=100)
    mesh.run_until(lambda: not sender.open, 15)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert sorted(bodies(receiver)) == [str(number) for number in range(5)]
    assert stuck.messages == []


def test_a_single_message_that_waits_is_recalled_when_a_consumer_comes_elsewhere(mesh: SimMesh) -> None:
    consume(mesh, "r3", "cmd.1", credit=0)
    sender = mesh.client("r1", "control").sender(None)
    send(mesh, sender, "cmd.1")
    mesh.run(1)
    assert circuits(mesh, "r1") == {"cmd.#": 1}
    (receiver,) = consume(mesh, "r2", "cmd.1")
    mesh.run_until(lambda: not sender.open, 15)
    assert len(receiver.messages) == 1


def test_an_address_that_stands_still_gives_back_what_is_more_than_its_share_of_the_credit(mesh: SimMesh) -> None:
    stuck, other = consume(mesh, "r3", "cmd.1", "cmd.2", credit=0)
    other.link.grant(1_000)
    sender = mesh.client("r1", "control").sender(None)
    for number in range(250):
        sender.send(Message(address="cmd.1", body=str(number)).encode())
    mesh.run(1)
    assert len(sender.open) == 250
    mesh.run(30)
    assert Counter(kinds(sender)) == {OutcomeCode.RELEASED: 250 - 62}
    for number in range(100):
        send(mesh, sender, "cmd.2", str(number))
    mesh.run(1)
    assert bodies(other) == [str(number) for number in range(100)]
    stuck.link.grant(1_000)
    settled(mesh, sender)
    assert bodies(stuck) == [str(number) for number in range(62)]


def test_a_consumer_that_settles_in_batches_gets_its_batch(mesh: SimMesh) -> None:
    """Nothing is settled until all have come: so no later message may wait for an outcome of an earlier one."""
    (receiver,) = consume(mesh, "r3", "cmd.1", credit=0)
    receiver.accepts = receiver.tops_up = False
    sender = mesh.client("r1", "control").sender(None)
    for number in range(40):
        send(mesh, sender, "cmd.1", (LARGE if number == 30 else "") + str(number))
        if number % 10 == 5:
            receiver.link.grant(5)
    mesh.run(1)
    receiver.link.grant(40)
    mesh.run(5)
    assert [body[-2:].lstrip("x") for body in bodies(receiver)] == [str(number) for number in range(40)]
    assert len(sender.open) == 40
    receiver.settle()
    settled(mesh, sender)


def test_messages_that_wait_for_a_consumer_that_leaves_are_released(mesh: SimMesh) -> None:
    (stuck,) = consume(mesh, "r3", "cmd.1", credit=2)
    stuck.tops_up = False
    sender = mesh.client("r1", "control").sender(None)
    for number in range(20):
        send(mesh, sender, "cmd.1", str(number))
    mesh.run(1)
    mesh.cut(mesh.pipes_of(mesh.routers["r3"])[-1])
    mesh.run_until(lambda: not sender.open, 15)
    assert Counter(kinds(sender)) == {OutcomeCode.ACCEPTED: 2, OutcomeCode.RELEASED: 18}


def test_a_consumer_that_comes_back_soon_gets_what_waited(mesh: SimMesh) -> None:
    (stuck,) = consume(mesh, "r3", "cmd.1", credit=0)
    sender = mesh.client("r1", "control").sender(None)
    for number in range(20):
        send(mesh, sender, "cmd.1", str(number))
    mesh.run(1)
    mesh.cut(mesh.pipes_of(mesh.routers["r3"])[-1])
    mesh.run(0.5)
    (receiver,) = consume(mesh, "r3", "cmd.1", credit=100)
    settled(mesh, sender)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert bodies(receiver) == [str(number) for number in range(20)]
    assert stuck.messages == []


def test_a_message_too_large_for_the_consumer_is_rejected(mesh: SimMesh) -> None:
    consume(mesh, "r3", "cmd.1", max_message_bytes=1_000)
    sender = mesh.client("r1", "control").sender(None)
    for size in (10, 2_000, 10):
        send(mesh, sender, "cmd.1", "x" * size)
    settled(mesh, sender)
    assert kinds(sender) == [OutcomeCode.ACCEPTED, OutcomeCode.REJECTED, OutcomeCode.ACCEPTED]


def test_a_released_message_goes_to_another_consumer_of_the_egress_and_then_back(mesh: SimMesh) -> None:
    first, second = consume(mesh, "r3", "cmd.1"), consume(mesh, "r3", "cmd.1")
    for (receiver,) in (first, second):
        receiver.accepts = False
    sender = mesh.client("r1", "control").sender(None)
    send(mesh, sender, "cmd.1")
    for _ in range(2):
        mesh.run(1)
        for (receiver,) in (first, second):
            receiver.settle(RELEASED)
            mesh.touch(mesh)
    settled(mesh, sender)
    assert kinds(sender) == [OutcomeCode.RELEASED]
    assert [len(receiver.messages) for (receiver,) in (first, second)] == [1, 1]


def test_a_user_sends_only_where_the_user_may(tmp_path: Path) -> None:
    users = {"ann": {"send": ["cmd.ann.#"], "receive": ["#"]}, "anonymous": {"send": [], "receive": ["#"]}}
    mesh = mesh_with(tmp_path, DECLARED, users=users)
    consume(mesh, "r3", "cmd.ann.1", "cmd.bob.1")
    sender = mesh.client("r1", "ann", user="ann").sender(None)
    for address in ("cmd.ann.1", "cmd.bob.1", "cmd.ann.1", "cmd.#"):
        send(mesh, sender, address)
    settled(mesh, sender)
    accepted, rejected = OutcomeCode.ACCEPTED, OutcomeCode.REJECTED
    assert kinds(sender) == [accepted, rejected, accepted, rejected]


def test_a_circuit_over_a_better_path_keeps_the_order_and_is_not_stopped_by_an_address_that_waits(
    tmp_path: Path,
) -> None:
    routers = {"r1": {"connect": ["r2", "r3"]}, "r2": {"connect": ["r3"]}, "r3": {}}
    topology = {"mesh": "mesh", "node_tls": False, "routers": routers, "addresses": {"cmd.#": "anycast"}}
    mesh = SimMesh(topology, tmp_path)
    mesh.converge()
    mesh.cut_trunk("r1", "r3")
    mesh.run(5)
    stuck, other = consume(mesh, "r3", "cmd.1", "cmd.2", credit=0)
    other.link.grant(1_000)
    sender = mesh.client("r1", "control").sender(None)
    for number in range(5):
        send(mesh, sender, "cmd.1", str(number))
        send(mesh, sender, "cmd.2", str(number))
    mesh.run(0.5)
    mesh.link("r1", "r3")
    for number in range(5, 100):
        send(mesh, sender, "cmd.1", str(number)) if number < 80 else None
        send(mesh, sender, "cmd.2", str(number))
        mesh.run(0.1)
    assert bodies(other) == [str(number) for number in range(100)]
    takers = [taker for taker in _shared(mesh, "r1").takers if not taker.is_closing]
    assert [taker.path for taker in takers] == [("r1", "r3")]
    stuck.link.grant(1_000)
    settled(mesh, sender)
    assert bodies(stuck) == [str(number) for number in range(80)]


def _shared(mesh: SimMesh, router: str) -> Any:
    groups = [entry.group for entry in mesh.routers[router]._addresses._entries.values()]
    return next(group for group in groups if group.egress is not None)


def test_an_address_cannot_be_checked_as_one_and_delivered_as_another(mesh: SimMesh) -> None:
    consumed = consume(mesh, "r3", "cmd.1")[0]
    sender = mesh.client("r1", "control").sender(None)
    for prefix in ("", "amqp:", "amqp:/", "amqp://host/", "amqp:amqp:", "amqps:/amqp://x/", "AMQP:amqps:/"):
        send(mesh, sender, f"{prefix}cmd.1", prefix)
    settled(mesh, sender)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert len(bodies(consumed)) == 7
    # Timers of addresses that are set apart run without an error.
    for prefix in ("", "amqp:amqp:"):
        sender.send(Message(address=f"{prefix}cmd.1", body="pre-settled").encode(), settled=True)
    mesh.run(60)
    assert len(bodies(consumed)) == 9


@pytest.mark.parametrize("place", ["r1", "r2"])
@pytest.mark.parametrize("wait_s", [8, 24, 60])
def test_a_presettled_message_waits_for_the_credit_of_its_consumer(mesh: SimMesh, place: str, wait_s: float) -> None:
    receiver = consume(mesh, "r3", "cmd.1", credit=0)[0]
    sender = mesh.client(place, "control").sender(None)
    mesh.run(1)
    sender.send(Message(address="cmd.1", body="once").encode(), settled=True)
    mesh.run(wait_s)
    receiver.link.grant(10)
    mesh.run(5)
    assert bodies(receiver) == ["once"]


def inlets() -> int:
    """How many inlets of senders without an address there are in this process, which other tests ran in, too."""
    gc.collect()
    return sum(type(each).__name__ == "AnonymousInlet" for each in gc.get_objects())


def test_a_sender_of_presettled_commands_leaves_nothing_behind(mesh: SimMesh) -> None:
    before = inlets()
    addresses = [f"cmd.{number}" for number in range(1200)]
    consume(mesh, "r3", *addresses)
    other = mesh.client("r1", "another").sender(None)
    client = mesh.client("r1", "control")
    sender = client.sender(None)
    for turn in range(2):
        for address in addresses:
            send(mesh, sender, address, str(turn))
            sender.send(Message(address=address, body="pre-settled").encode(), settled=True)
        settled(mesh, sender)
        mesh.run(15)
    mesh.cut(client.pipe)
    send(mesh, other, "cmd.1", "still")
    settled(mesh, other)
    mesh.run(60)
    assert inlets() <= before + 2
