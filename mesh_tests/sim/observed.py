"""A simulated mesh whose nodes record into rings, an observer of these, and clients that keep a ledger.

The ledger has whatever clients sent and received, with outcomes, by address, pattern, user and router.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from addressing.book import AddressBook
from addressing.topology.model import Topology
from mesh.simulation.clients import SimClient
from mesh.simulation.sim_mesh import SimMesh
from mesh.watch.counts import DeliveryCounts
from mesh.watch.host_model import HostModel
from mesh.watch.host_rings import HostRings
from recording.recorder import recording
from recording.records import Recorder
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, rejected
from wire.message import Message, encode

ADDRESSES = {"rpc.#": "anycast", "prices.#": "multicast", "orders.#": "queue", "news.#": "topic"}
LINE: dict[str, Any] = {
    "routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}},
    "brokers": {"b1": {"data": "b1", "routers": ["r3"]}},
    "addresses": ADDRESSES,
}
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
    """The mesh of a ``model``, with a ring for each node, and an observer of the rings."""

    def __init__(self, folder: Path, level: str, recorded: ExitStack, model: dict[str, Any] = LINE) -> None:
        self.topology = Topology.model_validate(
            {
                "mesh": "observed",
                "node_tls": False,
                **model,
                "link_logs": {"level": level, "ring_bytes": 1 << 20},
            }
        )
        started_us = time.time_ns() // 1000

        def recorder_of(name: str) -> Recorder:
            role = "broker" if name in self.topology.brokers else "router"
            recorder, _ = recorded.enter_context(
                recording(self.topology, name, role, folder / "rings", lambda event: None)
            )
            recorder.set_clock(started_us, 0)
            return recorder

        self.mesh = SimMesh(self.topology, folder / "stores", recorder_of=recorder_of)
        recorded.callback(self.mesh.close)
        self.book = AddressBook(self.topology)
        self.host = HostModel(self.pattern_of)
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
            for name in (*self.topology.routers, *self.topology.brokers):
                self.mesh.tell_second(name)
        while self.rings.step():
            pass
        assert self.told == []

    def client(self, router: str, user: str | None) -> SimClient:
        return self.mesh.client(router, user=user)

    # The ledger
    def count(self, direction: str, router: str, address: str, user: str | None, field: str, data: list[bytes]) -> None:
        side = "ingress" if direction == "in" else "egress"
        policy = self.book.resolve(address)
        assert policy is not None
        pattern = policy.pattern
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
        states: list[tuple[str, str, dict[str, DeliveryCounts]]] = [
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


def message(address: str, number: int) -> bytes:
    return encode(Message(to=address, body="x" * (100 + number)))


class Exchange:
    """Traffic from a client of alice to consumers of bob with one outcome; the links stay.

    ``path``: the routers of alice and of bob.
    """

    def __init__(
        self,
        observed: ObservedMesh,
        address: str,
        outcome: str,
        *,
        has_address: bool = True,
        path: tuple[str, str] = ("r1", "r3"),
    ) -> None:
        self.observed, self.address, self.outcome = observed, address, outcome
        self.is_stored = address.startswith(("orders", "news"))
        self.first, self.last = path
        count = KINDS[address.partition(".")[0]]
        self.receivers = [observed.client(self.last, "bob").receiver(address, credit=SENT) for _ in range(count)]
        for receiver in self.receivers:
            receiver.accepts = receiver.tops_up = False
        # Until the consumers are known at r1.
        observed.mesh.run(1.0)
        self.sender = observed.client(self.first, "alice").sender(address if has_address else None)
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
        sent = "accepted" if self.is_stored and given is not None else self.outcome
        self.count("in", self.first, "alice", sent, self.data)
        for receiver in self.receivers:
            got = "accepted" if self.is_stored and given is None else self.outcome
            self.count("out", self.last, "bob", got, receiver.messages)

    def count(self, direction: str, router: str, user: str, field: str, data: list[bytes]) -> None:
        self.observed.count(direction, router, self.address, user, field, data)


def differences(observed: ObservedMesh, shared: str | None = None) -> dict[tuple[str, str, str, str], tuple[int, int]]:
    """By what is counted: (observed, in the ledger) where these differ.

    ``shared``: a pattern whose addresses may share links, such as `rpc.#`: what came in counts for all of them.
    """
    seen, ledger = (_together(counts, shared) for counts in (observed.observed(), observed.ledger))
    return {key: (seen[key], ledger[key]) for key in seen | ledger if seen[key] != ledger[key]}


def _together(counts: Counter[tuple[str, str, str, str]], shared: str | None) -> Counter[tuple[str, str, str, str]]:
    found: Counter[tuple[str, str, str, str]] = Counter()
    for (entity, name, direction, field), count in counts.items():
        is_shared = shared is not None and (entity, direction) == ("address", "in_") and name.startswith(shared[:-1])
        found[entity, shared if is_shared and shared is not None else name, direction, field] += count
    return found
