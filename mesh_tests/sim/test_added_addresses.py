"""Addresses are added to a mesh that runs, at one node after the other: is anything else disturbed, do they work?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from addressing.additions import conflicts
from addressing.book import AddressBook
from addressing.topology.model import DeclaredAddress, Topology
from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_fallback import body, body_of
from wire.delivery import ACCEPTED

MODEL: dict[str, Any] = {
    "mesh": "growing",
    "node_tls": False,
    "routers": {
        "r1": {"connect": ["r2"]},
        "r2": {"connect": ["r3"]},
        "r3": {},
        "e1": {"mode": "edge", "connect": ["r1"]},
    },
    "brokers": {"b1": {"routers": ["r2"], "data": "b1"}, "b2": {"routers": ["r3"], "data": "b2"}},
    "default_broker": "b1",
    "addresses": {
        "rpc": "anycast",
        "prices.#": "multicast",
        "prices.eu": "multicast",
        "work.#": "anycast",
        "orders.#": "queue",
        "shared": {"type": "queue", "brokers": ["b1", "b2"]},
        "news": "topic",
    },
}
MORE: dict[str, Any] = {
    "jobs": "anycast",
    "tasks.#": "anycast",
    "ticks": "multicast",
    "invoices": {"type": "queue", "dead_letter": "invoices.dead"},
    "invoices.dead": "queue",
    "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
    "alerts.#": "topic",
    "asked": {"type": "anycast", "fallback": "asked.later"},
    "asked.later": "queue",
}
OLD = ("rpc", "prices.eu", "prices.x", "work.a", "orders.1", "shared", "news")
NEW = ("jobs", "tasks.a", "ticks", "invoices", "sharded", "alerts.eu", "asked")
NODES = ("b1", "b2", "r1", "r2", "r3", "e1")
ROUTERS = ("r1", "r2", "r3", "e1")
SHARDED = ("shared", "sharded")
"""Two brokers share these, and each keeps the order of its own messages only."""
ROUTED = ("invoices", "alerts.eu")
"""Links of clients to these lead to a broker, by way of the router that is connected to it."""
COPIED = ("prices.eu", "prices.x", "news", "ticks", "alerts.eu")


def after_of(model: Mapping[str, Any] = MODEL, more: Mapping[str, Any] = MORE) -> Topology:
    return Topology.model_validate({**model, "addresses": {**model["addresses"], **more}})


def added_of(after: Topology, more: Mapping[str, Any] = MORE) -> dict[str, DeclaredAddress]:
    return {name: after.addresses[name] for name in more}


def add(mesh: SimMesh, node: str, added: Mapping[str, DeclaredAddress]) -> None:
    found: Any = mesh.brokers.get(node) or mesh.routers[node]
    found.check_added(added)
    found.add_addresses(added, mesh.now)
    mesh.touch(found)
    mesh.settle()


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    found = SimMesh(MODEL, tmp_path)
    found.converge()
    found.run(1)
    return found


class Traffic:
    """Two receivers and a sender for each of some addresses, at routers that a seed chooses."""

    def __init__(self, mesh: SimMesh, addresses: tuple[str, ...], seed: int) -> None:
        random = Random(seed)
        self._mesh = mesh
        self._sent = dict.fromkeys(addresses, 0)
        self.receivers: dict[str, list[SimReceiver]] = {}
        self.senders: dict[str, SimSender] = {}
        for address in addresses:
            clients = [mesh.client(random.choice(ROUTERS), f"{address}-{n}") for n in range(2)]
            self.receivers[address] = [client.receiver(address, 500) for client in clients]
        mesh.run(1)
        for address in addresses:
            self.senders[address] = mesh.client(random.choice(ROUTERS), f"{address}-s").sender(address)
        mesh.run(1)

    def send(self, count: int = 3) -> None:
        for address, sender in self.senders.items():
            for _ in range(count):
                self._mesh.send(sender, body(str(self._sent[address])))
                self._sent[address] += 1

    def check(self) -> None:
        """Nothing is lost, doubled or out of order, and each message is accepted."""
        for each in (each for found in self.receivers.values() for each in found):
            each.settle()
        self._mesh.run(3)
        for address, count in self._sent.items():
            got = [[int(body_of(each)) for each in found.messages] for found in self.receivers[address]]
            assert address in SHARDED or all(numbers == sorted(numbers) for numbers in got), address
            assert len(self.senders[address].outcomes) == count, address
            assert set(self.senders[address].outcomes.values()) == {ACCEPTED}, address
            together = sorted(number for numbers in got for number in numbers)
            copies = 2 if address in COPIED else 1
            assert together == sorted([*range(count)] * copies), address
            assert all(
                not each.link.is_gone and each.error is None
                for each in (*self.receivers[address], self.senders[address])
            ), address


@pytest.mark.parametrize("seed", range(6))
def test_traffic_goes_on_while_nodes_learn_new_addresses_one_by_one_and_the_new_ones_work(
    mesh: SimMesh, seed: int
) -> None:
    random = Random(seed)
    after = after_of()
    added = added_of(after)
    assert list(conflicts(AddressBook(mesh.topology), added)) == []
    traffic = Traffic(mesh, OLD, seed)
    everything = mesh.client("r3", "all").receiver("prices.*", 500)
    mesh.run(1)
    traffic.send()
    order = [*NODES[:2], *random.sample(ROUTERS, len(ROUTERS))]
    for node in order:
        add(mesh, node, added)
        traffic.send(2)
        mesh.run(random.choice([0.0, 0.001, 0.5]))
    new = Traffic(mesh, NEW, seed)
    for _ in range(3):
        traffic.send()
        new.send()
    new.check()
    traffic.check()
    assert len(everything.messages) == 2 * (3 + 2 * len(order) + 9)


@pytest.mark.parametrize("address", [address for address in NEW if address not in ROUTED])
@pytest.mark.parametrize("last", ROUTERS)
def test_a_new_address_works_although_its_clients_came_before_one_router_had_learnt_of_it(
    mesh: SimMesh, last: str, address: str
) -> None:
    added = added_of(after_of())
    for node in NODES:
        if node != last:
            add(mesh, node, added)
    others = [router for router in ROUTERS if router != last]
    receivers = [mesh.client(router, f"in-{router}").receiver(address, 100) for router in others]
    senders = [mesh.client(router, f"out-{router}").sender(address) for router in others]
    mesh.run(0.2)
    add(mesh, last, added)
    mesh.run(1)
    for number, sender in enumerate(senders):
        mesh.send(sender, body(str(number)))
    mesh.run(3)
    assert [each.error for each in (*senders, *receivers)] == [None] * 6
    got = sorted(int(body_of(message)) for each in receivers for message in each.messages)
    assert got == sorted([0, 1, 2] * (3 if address in COPIED else 1))


@pytest.mark.parametrize("address", ROUTED)
def test_a_link_to_a_new_queue_is_refused_until_the_router_at_its_broker_knows_the_queue(
    mesh: SimMesh, address: str
) -> None:
    added = added_of(after_of())
    for node in ("b1", "b2", "r1", "r3", "e1"):
        add(mesh, node, added)
    early = mesh.client("r1", "early").receiver(address, 100)
    mesh.run(1)
    assert early.error is not None
    assert early.error.condition == "amqp:not-found"
    add(mesh, "r2", added)
    receiver = mesh.client("r1", "in").receiver(address, 100)
    mesh.run(1)
    sender = mesh.client("e1", "out").sender(address)
    mesh.send(sender, body("1"))
    mesh.run(1)
    assert [body_of(message) for message in receiver.messages] == [b"1"]


def test_a_filter_in_use_that_would_match_topics_too_is_named_and_nothing_changes(mesh: SimMesh) -> None:
    mesh.client("r2", "all").receiver("*.eu", 10)
    mesh.run(1)
    added = added_of(after_of(more={"alerts.#": "topic"}), {"alerts.#": "topic"})
    mesh.routers["r1"].check_added(added)
    with pytest.raises(ValueError, match=r"consumers use the filter \*\.eu"):
        mesh.routers["r2"].check_added(added)
    sender = mesh.client("r1", "s").sender("alerts.eu")
    mesh.run(1)
    assert sender.error is not None


def test_a_queue_of_an_earlier_topology_is_named_and_not_served_with_settings_that_it_does_not_have(
    tmp_path: Path,
) -> None:
    old = SimMesh(after_of(), tmp_path)
    old.converge()
    sender = old.client("r1", "s").sender("invoices")
    old.send(sender, body("1"))
    old.run(1)
    old.close()
    mesh = SimMesh(MODEL, tmp_path)
    mesh.converge()
    with pytest.raises(ValueError, match="the broker stores invoices from an earlier topology"):
        mesh.brokers["b1"].check_added(added_of(after_of()))
    mesh.brokers["b2"].check_added(added_of(after_of()))
    bills: dict[str, Any] = {"bills": {"type": "queue", "broker_address": "invoices"}}
    with pytest.raises(ValueError, match="the broker stores invoices from an earlier topology"):
        mesh.brokers["b1"].check_added(added_of(after_of(more=bills), bills))
    mesh.close()
