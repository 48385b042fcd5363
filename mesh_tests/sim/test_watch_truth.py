"""What an observer makes of the rings of a mesh is what the clients had in hand, to the message.

Clients keep a ledger of whatever they sent and received, with outcomes, by address and user; nodes record into rings,
which `HostRings` reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.clients import SimReceiver, SimSender
from mesh_tests.sim.observed import (
    ADDRESSES,
    KINDS,
    LINE,
    OUTCOMES,
    Exchange,
    ObservedMesh,
    differences,
    message,
)
from wire.message import Message, encode


@pytest.fixture(params=["full", "summary"])
def observed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObservedMesh]:
    with ExitStack() as recorded:
        yield ObservedMesh(tmp_path, request.param, recorded)


@pytest.mark.parametrize("kind", KINDS)
def test_every_outcome_of_every_type_is_counted_once_for_all_that_it_concerns(observed: ObservedMesh, kind: str):
    exchanges = [Exchange(observed, f"{kind}.{outcome}", outcome) for outcome in OUTCOMES]
    for each in exchanges:
        each.live()
    observed.look()
    assert differences(observed) == {}
    assert sum(value for key, value in observed.ledger.items() if key[3] == "deliveries") > 0
    assert at_routers(observed) == {
        name: (each.ingress.deliveries, each.egress.deliveries) for name, each in observed.host.addresses.items()
    }


def at_routers(observed: ObservedMesh) -> dict[str, tuple[int, int]]:
    """By address, deliveries from clients and to clients, summed over the routers, as each router has them."""
    found: dict[str, tuple[int, int]] = {}
    for node in observed.host.nodes.values():
        for name, there in node.addresses.items():
            came, went = found.get(name, (0, 0))
            found[name] = (came + there.ingress, went + there.egress)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_senders_without_an_address_count_where_their_messages_go(observed: ObservedMesh, kind: str):
    exchanges = [Exchange(observed, f"{kind}.{outcome}", outcome, has_address=False) for outcome in OUTCOMES]
    for each in exchanges:
        each.live()
    observed.look()
    # Messages that share links have the pattern as address in the records: those to queues and topics, and those to
    # anycast addresses unless they wait or are pre-settled.
    assert differences(observed, None if kind == "prices" else f"{kind}.#") == {}


def test_what_a_sender_without_an_address_gets_back_counts_at_its_router(observed: ObservedMesh):
    """Refused messages have no link in the records, so they count for no address and no user."""
    mesh, sender = observed.mesh, observed.client("r1", "alice").sender(None)
    mesh.run(0.1)
    for address in ("rpc.nobody", "prices.nobody", "undeclared.x", None):
        mesh.send(sender, encode(Message(to=address, body="x")))
    mesh.run_until(lambda: len(sender.outcomes) == 4)
    observed.look()
    host = observed.host
    assert (host.nodes["r1"].ingress.released, host.nodes["r1"].ingress.rejected) == (2, 2)
    assert (host.users["alice"].ingress.released, host.users["alice"].ingress.rejected) == (2, 0)
    assert {each.address: each.ingress.released for each in host.addresses.values()} == {
        "rpc.nobody": 1, "prices.nobody": 1,
    }  # fmt: skip


def test_messages_that_were_aborted_are_counted_as_such(observed: ObservedMesh):
    receiver = observed.client("r3", "bob").receiver("rpc.large")
    observed.mesh.run(1.0)
    client = observed.client("r1", "alice")
    sender = client.sender("rpc.large")
    mesh = observed.mesh
    mesh.run_until(lambda: sender.link.credit > 0)
    whole = message("rpc.large", 200_000)
    part = whole[:100_000]
    for _ in range(3):
        delivery = sender.begin()
        sender.link.send(part)
        mesh.run(0.2)
        before = receiver.aborted
        sender.abort(delivery)
        mesh.run_until(lambda before=before: receiver.aborted == before + 1)
    mesh.run(0.1)
    observed.look()
    seen = observed.observed()
    for kind, name, side in (
        ("address", "rpc.large", "in_"), ("address", "rpc.large", "out_"), ("user", "alice", "in_"),
        ("user", "bob", "out_"), ("pattern", "rpc.#", "in_"), ("node", "r1", "ingress_"), ("node", "r3", "egress_"),
    ):  # fmt: skip
        assert (seen[kind, name, side, "aborted"], seen[kind, name, side, "deliveries"]) == (3, 3), (kind, name, side)


def links_of(observed: ObservedMesh) -> dict[str, tuple[int, int]]:
    return {each.address: (each.producers, each.consumers) for each in observed.host.addresses.values()}


def test_clients_and_links_are_counted_once_at_whatever_router_and_queues_by_their_messages(observed: ObservedMesh):
    senders: list[SimSender] = []
    clients = [observed.client(router, "alice") for router in LINE["routers"]]
    for client in clients:
        senders += [client.sender("orders.1"), client.sender("prices.1")]
        client.receiver("prices.1")
    observed.mesh.run(1.0)
    for sender in senders:
        observed.mesh.send(sender, message("x", 1))
    observed.mesh.run_until(lambda: all(len(each.outcomes) == 1 for each in senders))
    observed.look()
    host = observed.host
    assert links_of(observed) == {"orders.1": (3, 0), "prices.1": (3, 3)}
    assert (host.users["alice"].connections, host.users["alice"].links) == (3, 9)
    assert [host.nodes[name].clients for name in ("r1", "r2", "r3", "b1")] == [1, 1, 1, 0]
    assert host.addresses["orders.1"].depth == 3
    (queue,) = [each for each in host.nodes["b1"].queues.values() if each.address_text == "orders.1"]
    assert (queue.depth, queue.enqueued, queue.dequeued) == (3, 3, 0)
    for client in clients:
        observed.mesh.cut(client.pipe)
    observed.look()
    assert (host.users["alice"].connections, host.users["alice"].links) == (0, 0)
    assert [node.clients for node in host.nodes.values()] == [0, 0, 0, 0]
    assert host.patterns["orders.#"].ingress.accepted == 3


def test_a_producer_without_a_taker_waits_and_no_longer_once_it_has_one(observed: ObservedMesh):
    observed.client("r1", "alice").sender("rpc.nobody")
    observed.look()
    (link,) = [each for each in observed.host.nodes["r1"].links.values() if each.is_producer]
    assert (link.waits_for, link.address_text) == ("no_taker", "rpc.nobody")
    assert observed.host.patterns["rpc.#"].waiting_producers == 1
    assert observed.host.nodes["r1"].waiting_producers == 1
    receiver: Any = observed.client("r3", "bob").receiver("rpc.nobody")
    assert isinstance(receiver, SimReceiver)
    observed.look()
    assert observed.host.patterns["rpc.#"].waiting_producers == 0
    assert link.waits_for is None
    assert link.starved_s > 0


# Edge routers and shards
EDGES: dict[str, Any] = {
    "routers": {"e1": {"mode": "edge", "connect": ["r1"]}, "r1": {"connect": ["r2"]}, "r2": {}},
    "brokers": {"b1": {"data": "b1", "routers": ["r1"]}, "b2": {"data": "b2", "routers": ["r2"]}},
    "default_broker": "b1",
    "addresses": {**ADDRESSES, "orders.#": {"type": "queue", "broker": "b1"},
                  "shards": {"type": "queue", "brokers": ["b1", "b2"]}},
}  # fmt: skip


@pytest.fixture
def at_edges(tmp_path: Path) -> Iterator[ObservedMesh]:
    with ExitStack() as recorded:
        yield ObservedMesh(tmp_path, "full", recorded, EDGES)


@pytest.mark.parametrize("path", [("e1", "r2"), ("r2", "e1"), ("e1", "e1")], ids=" to ".join)
@pytest.mark.parametrize("kind", KINDS)
def test_clients_of_edge_routers_count_like_others(at_edges: ObservedMesh, kind: str, path: tuple[str, str]):
    exchanges = [Exchange(at_edges, f"{kind}.{outcome}", outcome, path=path) for outcome in OUTCOMES]
    for each in exchanges:
        each.live()
    at_edges.look()
    assert differences(at_edges) == {}


def test_a_queue_on_two_brokers_counts_its_messages_at_both(at_edges: ObservedMesh):
    mesh, host, count = at_edges.mesh, at_edges.host, 20
    senders = [at_edges.client(router, "alice").sender("shards") for router in ("e1", "r1", "r2")]
    for sender in senders:
        for number in range(count):
            mesh.send(sender, message("shards", number))
    mesh.run_until(lambda: all(len(sender.outcomes) == count for sender in senders))
    at_edges.look()
    queues = {each.node.name: each for each in (*host.nodes["b1"].queues.values(), *host.nodes["b2"].queues.values())}
    assert host.addresses["shards"].depth == sum(each.depth for each in queues.values()) == 3 * count
    assert sum(each.enqueued for each in queues.values()) == host.addresses["shards"].ingress.accepted == 3 * count
    receiver = at_edges.client("r2", "bob").receiver("shards", credit=100)
    mesh.run_until(lambda: len(receiver.messages) == 3 * count)
    at_edges.look()
    assert host.addresses["shards"].depth == 0
    assert sum(each.dequeued for each in queues.values()) == host.users["bob"].egress.accepted == 3 * count
    assert (host.addresses["shards"].producers, host.addresses["shards"].consumers) == (3, 1)
