"""What an observer makes of the rings of a mesh is what the clients had in hand, to the message.

Clients keep a ledger of whatever they sent and received, with outcomes, by address and user; nodes record into rings,
which `HostRings` reads.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from addressing.book import AddressBook
from addressing.topology.model import Topology
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh.watch.counts import Counts
from mesh.watch.host_model import HostModel
from mesh.watch.host_rings import HostRings
from recording.recorder import recording
from recording.records import Recorder
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, rejected
from wire.message import Message, encode

ROUTERS = ("r1", "r2", "r3")
NODES = (*ROUTERS, "b1")
ADDRESSES = {"rpc.#": "anycast", "prices.#": "multicast", "orders.#": "queue", "news.#": "topic"}
OUTCOMES: dict[str, Outcome | None] = {
    "accepted": ACCEPTED,
    "rejected": rejected("amqp:not-allowed", "no"),
    "released": RELEASED,
    "modified": MODIFIED_FAILED,
    "settled": None,
}
"""By the field that counts them; None: sent settled."""
KINDS = {"rpc": 1, "prices": 2, "orders": 1, "news": 1}
"""By the first word of an address, the consumers that get each message."""
SENT = 7
Ledger = Counter[tuple[str, str, str, str]]
"""Messages by (kind of entity, name, `in` or `out`, field)."""


class ObservedMesh:
    """Three routers in a line and a broker, with a ring each, and an observer of the rings."""

    def __init__(self, folder: Path, level: str, recorded: ExitStack) -> None:
        self.topology = Topology.model_validate(
            {
                "mesh": "observed",
                "node_tls": False,
                "routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}},
                "brokers": {"b1": {"data": "b1", "routers": ["r3"]}},
                "addresses": ADDRESSES,
                "link_logs": {"level": level, "ring_bytes": 1 << 20},
            }
        )
        started_us = time.time_ns() // 1000

        def recorder_of(name: str) -> Recorder:
            role = "broker" if name == "b1" else "router"
            recorder, _ = recorded.enter_context(
                recording(self.topology, name, role, folder / "rings", lambda event: None)
            )
            recorder.set_clock(started_us, 0)
            return recorder

        self.mesh = SimMesh(self.topology, folder / "stores", recorder_of=recorder_of)
        recorded.callback(self.mesh.close)
        self.book = AddressBook(self.topology)
        self.host = HostModel(self.pattern_of, ADDRESSES.items())
        self.told: list[str] = []
        self.rings = HostRings(folder / "rings", self.host, self.told.append, self.told.append)
        recorded.callback(self.rings.close)
        self.ledger: Ledger = Counter()
        self.mesh.converge()

    def pattern_of(self, address: str) -> tuple[str, str] | None:
        policy = self.book.resolve(address)
        return (policy.pattern, policy.kind.value) if policy is not None and policy.pattern else None

    def look(self) -> None:
        """Let the nodes write their sums, and read them."""
        for _ in range(2):
            self.mesh.run(1.0)
            for name in NODES:
                self.mesh.tell_second(name)
        while self.rings.step():
            pass
        assert self.told == []

    def client(self, router: str, user: str | None) -> SimClient:
        return self.mesh.client(router, user=user)

    # The ledger
    def count(self, direction: str, router: str, address: str, user: str | None, field: str, data: list[bytes]) -> None:
        side = "ingress" if direction == "in" else "egress"
        pattern = f"{address.partition('.')[0]}.#"
        for kind, name, column in (
            ("node", router, f"{side}_"),
            ("user", user or "anonymous", f"{direction}_"),
            ("address", address, f"{direction}_"),
            ("pattern", pattern, f"{direction}_"),
        ):
            self.ledger[kind, name, column, "deliveries"] += len(data)
            self.ledger[kind, name, column, field] += len(data)
            self.ledger[kind, name, column, "bytes"] += sum(map(len, data))

    def observed(self) -> Ledger:
        host, found = self.host, Counter()
        states: list[tuple[str, str, dict[str, Counts]]] = [
            *(("node", each.name, {"ingress_": each.ingress, "egress_": each.egress}) for each in host.nodes.values()),
            *(("user", each.name, {"in_": each.ingress, "out_": each.egress}) for each in host.users.values()),
            *(
                ("address", each.address, {"in_": each.ingress, "out_": each.egress})
                for each in host.addresses.values()
            ),
            *(("pattern", each.pattern, {"in_": each.ingress, "out_": each.egress}) for each in host.patterns.values()),
        ]
        for kind, name, columns in states:
            for column, counts in columns.items():
                for field in ("deliveries", "bytes", "aborted", *OUTCOMES):
                    found[kind, name, column, field] = getattr(counts, field)
        return found


@pytest.fixture(params=["full", "summary"])
def observed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObservedMesh]:
    with ExitStack() as recorded:
        yield ObservedMesh(tmp_path, request.param, recorded)


def message(address: str, number: int) -> bytes:
    return encode(Message(to=address, body="x" * (100 + number)))


class Exchange:
    """Traffic from a client of alice at r1 to consumers of bob at r3 with one outcome; the links stay."""

    def __init__(self, observed: ObservedMesh, address: str, outcome: str, *, has_address: bool = True) -> None:
        self.observed, self.address, self.outcome = observed, address, outcome
        self.is_stored = address.startswith(("orders", "news"))
        count = KINDS[address.partition(".")[0]]
        self.receivers = [observed.client("r3", "bob").receiver(address, credit=SENT) for _ in range(count)]
        for receiver in self.receivers:
            receiver.accepts = receiver.tops_up = False
        # Until the consumers are known at r1.
        observed.mesh.run(1.0)
        self.sender = observed.client("r1", "alice").sender(address if has_address else None)
        self.data = [message(address, number) for number in range(SENT)]

    def live(self) -> None:
        given = OUTCOMES[self.outcome]
        mesh = self.observed.mesh
        for data in self.data:
            mesh.send(self.sender, data, settled=given is None)
        mesh.run_until(lambda: all(len(each.messages) == SENT for each in self.receivers))
        for receiver in self.receivers:
            # A broker sends unsettled what came to it settled.
            receiver.settle(ACCEPTED if given is None else given)
        if given is not None:
            mesh.run_until(lambda: len(self.sender.outcomes) == SENT)
        mesh.run(0.1)
        sent = {"settled": "settled"}.get(self.outcome, "accepted" if self.is_stored else self.outcome)
        self.count("in", "r1", "alice", sent, self.data)
        for receiver in self.receivers:
            got = "accepted" if self.is_stored and given is None else self.outcome
            self.count("out", "r3", "bob", got, receiver.messages)

    def count(self, direction: str, router: str, user: str, field: str, data: list[bytes]) -> None:
        self.observed.count(direction, router, self.address, user, field, data)


def differences(observed: ObservedMesh) -> dict[tuple[str, str, str, str], tuple[int, int]]:
    """By what is counted: (observed, in the ledger) where these differ."""
    seen = observed.observed()
    return {
        key: (seen[key], observed.ledger[key]) for key in seen | observed.ledger if seen[key] != observed.ledger[key]
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_outcome_of_every_type_is_counted_once_for_all_that_it_concerns(observed: ObservedMesh, kind: str):
    exchanges = [Exchange(observed, f"{kind}.{outcome}", outcome) for outcome in OUTCOMES]
    for each in exchanges:
        each.live()
    observed.look()
    assert differences(observed) == {}
    assert sum(value for key, value in observed.ledger.items() if key[3] == "deliveries") > 0


@pytest.mark.parametrize("kind", KINDS)
def test_senders_without_an_address_count_where_their_messages_go(observed: ObservedMesh, kind: str):
    exchanges = [Exchange(observed, f"{kind}.{outcome}", outcome, has_address=False) for outcome in OUTCOMES]
    for each in exchanges:
        each.live()
    observed.look()
    if kind in ("orders", "news"):
        # Their messages share links, which have the pattern as address: a record does not tell one from another.
        shared = f"{kind}.#"
        for key in [key for key in observed.ledger if key[:1] + key[2:3] == ("address", "in_")]:
            observed.ledger["address", shared, *key[2:]] += observed.ledger.pop(key)
    assert differences(observed) == {}


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
    clients = [observed.client(router, "alice") for router in ROUTERS]
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
    assert [host.nodes[name].clients for name in NODES] == [1, 1, 1, 0]
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
