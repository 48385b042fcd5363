"""An operator closes connections and links: what do peers hear, and where do deliveries under way go?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.events import LinkRefused
from mesh.simulation.clients import SimClient
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Ring
from mesh_tests.sim.line import ADDRESSES
from recording.records import Recorder
from wire.delivery import ACCEPTED, OutcomeCode
from wire.errors import AmqpError
from wire.forced_end import ForcedEnd
from wire.log_events import ConnectionForced, LinkForced
from wire.terminus import Durability, Expiry

FORCED = ForcedEnd("alice", "leaks credit")
BODY = b"\x00\x53\x75\xa0\x01x"
TO_RPC = b"\x00\x53\x73\xc0\x08\x03\x40\x40\xa1\x03rpc" + BODY
SENTENCE = "closed by the operator alice: leaks credit"
LASTING = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER, "capabilities": ("topic",)}


class ClosingMesh:
    """r1 - r2 - r3 with b1 at r3 and b2 at r1, and a ring of each node."""

    def __init__(self, folder: Path) -> None:
        self.rings = {name: Ring(8192) for name in ("r1", "r2", "r3", "b1", "b2")}
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in self.rings}
        topology = {
            "mesh": "closing",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}},
            "brokers": {"b1": {"data": "b1", "routers": ["r3"]}, "b2": {"data": "b2", "routers": ["r1"]}},
            "addresses": {
                **ADDRESSES,
                "orders": {"type": "queue", "broker": "b1"},
                "here": {"type": "queue", "broker": "b2"},
                "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
                "news": {"type": "topic", "broker": "b1"},
            },
        }
        self.mesh = SimMesh(topology, folder, recorder_of=lambda name: Recorder(self.rings[name].memory, "full"))
        self.mesh.converge()
        self.mesh.run(1)

    def told(self, node: str, kind: str) -> list[dict[str, Any]]:
        """Connections or links of the node that are open, by the records of its ring."""
        self.rows[node] += self.rings[node].take()[1]
        rows = [row for row in self.rows[node] if row["kind"] == kind]
        ended = {row[kind] for row in rows if row["event"] == "closed"}
        return [row for row in rows if row["event"] == "opened" and row[kind] not in ended]

    def connection_of(self, node: str, container: str) -> int:
        (found,) = [row for row in self.told(node, "connection") if row["container"] == container]
        return int(found["connection"])

    def link(self, node: str, role: str, address: str | None) -> tuple[int, int]:
        (found,) = [row for row in self.told(node, "link") if row["role"] == role and row.get("address") == address]
        return found["connection"], found["link"]

    def close_connection(self, node: str, number: int) -> None:
        self._node(node).close_connection(number, FORCED, self.mesh.now)
        self.mesh.flush()

    def close_link(self, node: str, connection: int, number: int) -> None:
        self._node(node).close_link(connection, number, FORCED, self.mesh.now)
        self.mesh.flush()

    def close_link_of(self, node: str, role: str, address: str | None) -> None:
        self.close_link(node, *self.link(node, role, address))

    def _node(self, node: str) -> Any:
        return self.mesh.brokers.get(node) or self.mesh.routers[node]

    def events(self, kind: type) -> list[Any]:
        return [event for _, _, event in self.mesh.log if isinstance(event, kind)]


@pytest.fixture
def closing(tmp_path: Path) -> ClosingMesh:
    return ClosingMesh(tmp_path)


def is_forced(error: Any, condition: str = "amqp:link:detach-forced") -> bool:
    return isinstance(error, AmqpError) and (error.condition, error.description) == (condition, SENTENCE)


# Connections
def test_a_client_hears_who_closed_its_connection_and_why(closing: ClosingMesh):
    client = closing.mesh.client("r1", "worker")
    client.receiver("rpc")
    closing.mesh.run(0.1)
    number = closing.connection_of("r1", "worker")
    closing.close_connection("r1", number)
    closing.mesh.run(0.1)
    assert is_forced(client.closed, "amqp:connection:forced")
    (event,) = closing.events(ConnectionForced)
    assert (event.connection, event.operator, event.reason, event.links) == (number, "alice", "leaks credit", 1)
    assert event.client.startswith("worker at ")
    closed = [row for row in closing.rows["r1"] + closing.rings["r1"].take()[1] if row["event"] == "closed"]
    causes = {row["cause"] for row in closed if row.get("connection") == number}
    assert causes == {"closed by us: amqp:connection:forced"}


def test_what_a_closed_consumer_held_goes_to_another_as_when_it_is_lost(closing: ClosingMesh):
    mesh = closing.mesh
    holder = mesh.client("r3", "holder").receiver("again", credit=1)
    holder.accepts = False
    sender = mesh.client("r1").sender("again")
    mesh.send(sender, BODY)
    mesh.run_until(lambda: bool(holder.held))
    other = mesh.client("r2").receiver("again")
    mesh.run(0.5)
    closing.close_connection("r3", closing.connection_of("r3", "holder"))
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    assert len(other.messages) == 1


def test_what_a_closed_producer_sent_completely_goes_on(closing: ClosingMesh):
    mesh = closing.mesh
    receiver = mesh.client("r3").receiver("rpc", credit=1)
    client = mesh.client("r1", "producer")
    sender = client.sender("rpc")
    mesh.send(sender, BODY)
    mesh.run_until(lambda: len(receiver.messages) == 1)
    receiver.tops_up = False
    mesh.send(sender, BODY)
    mesh.run(0.1)
    closing.close_connection("r1", closing.connection_of("r1", "producer"))
    receiver.link.grant(5)
    mesh.run(1)
    assert is_forced(client.closed, "amqp:connection:forced")
    assert len(receiver.messages) == 2


def test_a_closed_connection_between_routers_ends_at_both_and_messages_flow_again_once_it_is_dialed(
    closing: ClosingMesh,
):
    mesh = closing.mesh
    receiver = mesh.client("r3").receiver("rpc", credit=100)
    sender = mesh.client("r1").sender("rpc")
    for _ in range(5):
        mesh.send(sender, BODY)
    closing.close_connection("r2", closing.connection_of("r2", "r3"))
    mesh.run(0.5)
    assert mesh.routers["r1"].snapshot().routers[-1].cost is None
    del mesh.trunks[frozenset({"r2", "r3"})]
    mesh.link("r2", "r3")
    mesh.converge()
    mesh.send(sender, BODY)
    mesh.run(10)
    assert len(sender.outcomes) == 6
    assert all(outcome.kind in (OutcomeCode.ACCEPTED, OutcomeCode.MODIFIED) for outcome in sender.outcomes.values())
    assert sender.outcomes[6] == ACCEPTED
    assert receiver.messages


@pytest.mark.parametrize("closer", ["r3", "b1"])
@pytest.mark.parametrize("address", ["orders", "sharded"])
def test_closed_connections_to_a_broker_are_made_again_and_nothing_accepted_is_lost(
    closing: ClosingMesh, closer: str, address: str
):
    mesh = closing.mesh
    receiver = mesh.client("r2").receiver(address, credit=100)
    sender = mesh.client("r1").sender(address)
    for _ in range(5):
        mesh.send(sender, BODY)
    for row in closing.told(closer, "connection"):
        if row["role"] in ("broker", "router", "client") and row["container"] not in ("r2", "client"):
            closing.close_connection(closer, row["connection"])
    assert closing.events(ConnectionForced)
    mesh.run(1)
    for _ in range(5):
        mesh.send(sender, BODY)
    mesh.run_until(lambda: len(sender.outcomes) == 10)
    mesh.run(5)
    accepted = sum(outcome == ACCEPTED for outcome in sender.outcomes.values())
    assert accepted >= 5
    assert len(receiver.taken) >= accepted


# Links
@pytest.mark.parametrize("address", ["rpc", "prices", "orders", "here", "sharded", None])
def test_a_producer_hears_who_closed_its_link_and_its_connection_stays(closing: ClosingMesh, address: str | None):
    mesh = closing.mesh
    receiver = mesh.client("r3").receiver(address or "rpc", credit=100)
    client = mesh.client("r1")
    sender = client.sender(address)
    kept = client.sender("near")
    if address is not None:
        mesh.send(sender, BODY)
    else:
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(TO_RPC)
    mesh.run_until(lambda: len(sender.outcomes) == 1)
    closing.close_link_of("r1", "producer", address or "rpc")
    mesh.run(0.5)
    assert is_forced(sender.error)
    assert kept.link.is_open
    assert not client.closed
    assert len(receiver.messages) == 1
    (event,) = closing.events(LinkForced)
    assert (event.operator, event.reason, event.link) == ("alice", "leaks credit", sender.link.name)
    # Both sides of a link route have ended.
    at_brokers = closing.told("b1", "link") + closing.told("b2", "link")
    assert not [row for row in at_brokers if row["direction"] == "incoming" and "|" in row["name"]]


@pytest.mark.parametrize("address", ["rpc", "prices", "orders", "here", "sharded"])
def test_what_a_consumer_held_whose_link_was_closed_goes_to_another(closing: ClosingMesh, address: str):
    mesh = closing.mesh
    client = mesh.client("r1")
    holder = client.receiver(address, credit=2)
    holder.accepts = False
    sender = mesh.client("r2").sender(address)
    mesh.send(sender, BODY)
    mesh.run_until(lambda: len(holder.held) == 1)
    closing.close_link_of("r1", "consumer", address)
    mesh.run(0.5)
    assert is_forced(holder.error)
    assert not client.closed
    other = client.receiver(address, credit=5)
    mesh.run(3)
    if address in ("orders", "here", "sharded"):
        assert sender.outcomes == {1: ACCEPTED}
        assert len(other.taken) == 1
    else:
        # The consumer may have taken the message: the producer hears that nobody knows.
        assert [outcome.kind for outcome in sender.outcomes.values()] == [OutcomeCode.MODIFIED]
    assert mesh.send(sender, BODY) == 2
    mesh.run_until(lambda: sender.outcomes.get(2) == ACCEPTED)


@pytest.mark.parametrize("node", ["r1", "b1"])
def test_a_durable_subscription_outlives_its_closed_link(closing: ClosingMesh, node: str):
    mesh = closing.mesh
    client = mesh.client("r1", "reader")
    reader = client.receiver("news", name="mine", **LASTING)
    mesh.run(0.5)
    if node == "b1":
        (row,) = [row for row in closing.told("b1", "link") if row.get("address") == "news"]
        closing.close_link("b1", row["connection"], row["link"])
    else:
        closing.close_link_of("r1", "consumer", "news")
    mesh.run(0.5)
    assert is_forced(reader.error)
    sender = mesh.client("r2").sender("news")
    mesh.send(sender, BODY)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    again = client.receiver("news", name="mine", **LASTING)
    mesh.run_until(lambda: bool(again.messages))


def test_a_broker_closes_the_link_of_a_client_at_both_sides(closing: ClosingMesh):
    mesh = closing.mesh
    holder = mesh.client("r1").receiver("orders", credit=5)
    holder.accepts = False
    sender = mesh.client("r2").sender("orders")
    mesh.send(sender, BODY)
    mesh.run_until(lambda: bool(holder.held))
    (row,) = [row for row in closing.told("b1", "link") if row["direction"] == "outgoing"]
    closing.close_link("b1", row["connection"], row["link"])
    mesh.run(0.5)
    assert is_forced(holder.error)
    assert not [row for row in closing.told("r1", "link") if row["role"] == "consumer"]
    other = mesh.client("r1").receiver("orders")
    mesh.run_until(lambda: len(other.taken) == 1)


def test_the_attach_of_a_route_that_waits_for_its_broker_can_be_closed(closing: ClosingMesh):
    mesh = closing.mesh
    client = mesh.client("r1")
    receiver = client.receiver("orders")
    mesh.run_until(lambda: bool([row for row in closing.told("r1", "link") if row["role"] == "consumer"]), 5)
    assert not receiver.link.is_peer_attached
    closing.close_link_of("r1", "consumer", "orders")
    mesh.run(1)
    assert is_forced(receiver.error)
    again = client.receiver("orders")
    sender = client.sender("orders")
    mesh.send(sender, BODY)
    mesh.run_until(lambda: len(again.taken) == 1)
    assert not closing.events(LinkRefused)


# Refusals
def test_a_number_that_nobody_has_is_refused_with_those_that_are_there(closing: ClosingMesh):
    client = closing.mesh.client("r1", "worker")
    client.receiver("rpc")
    closing.mesh.run(0.1)
    number = closing.connection_of("r1", "worker")
    link = closing.link("r1", "consumer", "rpc")[1]
    for node in ("r1", "b1"):
        with pytest.raises(ValueError, match=rf"^there is no open connection of \w+ {node} with number 999: expected "):
            closing.close_connection(node, 999)
    with pytest.raises(
        ValueError, match=rf"^there is no link of connection r1/{number} with number 999: expected {link}$"
    ):
        closing.close_link("r1", number, 999)
    assert not client.closed


def test_a_circuit_is_not_closed_and_the_sentence_says_what_to_close(closing: ClosingMesh):
    mesh = closing.mesh
    mesh.client("r3").receiver("rpc", credit=100)
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender, BODY)
    (circuit,) = [row for row in closing.told("r2", "link") if row["direction"] == "incoming"]
    with pytest.raises(ValueError, match=r"joins this router and r1 at .*: expected a link of a client"):
        closing.close_link("r2", circuit["connection"], circuit["link"])
    mesh.client("r2").receiver("sharded")
    mesh.run(1)
    own = [row for row in closing.told("b1", "link") if "|" not in row["name"]]
    with pytest.raises(ValueError, match=r"is the router's own, for all clients of its address"):
        closing.close_link("b1", own[0]["connection"], own[0]["link"])


def test_a_connection_is_closed_once(closing: ClosingMesh):
    client = closing.mesh.client("r1", "worker")
    client.receiver("rpc")
    closing.mesh.run(0.1)
    number = closing.connection_of("r1", "worker")
    router = closing.mesh.routers["r1"]
    router.close_connection(number, FORCED, closing.mesh.now)
    with pytest.raises(ValueError, match="expected"):
        router.close_connection(number, FORCED, closing.mesh.now)
    closing.mesh.run(0.1)
    assert isinstance(client, SimClient)
    assert client.closed
