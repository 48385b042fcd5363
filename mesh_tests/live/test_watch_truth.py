"""What an observer reads of the rings of real nodes is what the clients sent and received, to the message.

Clients are connected to one router, or to the first and the last of three; whatever their number, each counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pytest

from addressing.book import AddressBook
from addressing.topology.loader import load_topology
from mesh.deploy.workdir import WorkDir
from mesh.watch.host_model import HostModel
from mesh.watch.host_rings import HostRings
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.outcomes import BY_FIELD as OUTCOMES
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED

QUIET_S = 60.0
ROUTERS = {
    1: "  r1: {listeners: [{authentication: none}]}",
    3: "  r1: {connect: [r2], listeners: [{authentication: none}]}\n  r2: {connect: [r3], listeners: []}\n"
    "  r3: {listeners: [{authentication: none}]}",
}
TOPOLOGY = """
mesh: watched
node_tls: {TLS}
routers:
{ROUTERS}
brokers:
  b1: {{routers: [{LAST}]}}
addresses:
  anycast.#: anycast
  multicast.#: multicast
  queue.#: queue
  topic.#: topic
link_logs: {{level: {LEVEL}, ring_bytes: 4194304}}
"""
TYPES = ("anycast", "multicast", "queue", "topic")
SENT = 20
MOST_PROBES = 10
Ledger = Counter[tuple[str, str, str]]
"""By address or pattern, `in` or `out`, and field of the counts."""


class Watched:
    """A running mesh of ``count`` routers, and an observer in this process."""

    def __init__(self, folder: Path, count: int, level: str, tls: str) -> None:
        self.last = f"r{count}"
        text = TOPOLOGY.format(ROUTERS=ROUTERS[count], LAST=self.last, LEVEL=level, TLS=tls)
        self.mesh = RunningMesh(text, folder)
        topology = load_topology(self.mesh.topology_file)
        book = AddressBook(topology)

        def pattern_of(address: str) -> tuple[str, str] | None:
            policy = book.resolve(address)
            return (policy.pattern, policy.kind.value) if policy is not None and policy.pattern else None

        self.host = HostModel(pattern_of, [(f"{kind}.#", kind) for kind in TYPES])
        self.told: list[str] = []
        self.rings = HostRings(WorkDir(topology.work_dir).rings, self.host, self.told.append, self.told.append)
        self.ledger: Ledger = Counter()
        self.clients: list[WireClient] = []

    def step_clients(self) -> None:
        """Send heartbeats: routers close connections that are silent."""
        for each in self.clients:
            each.step()

    def look(self) -> None:
        while self.rings.step():
            pass

    def wait(self, condition: Callable[[], object], what: str) -> None:
        def holds() -> object:
            self.look()
            return condition()

        wait_until(holds, QUIET_S, what)

    def observed(self) -> Ledger:
        found: Ledger = Counter()
        states = [*((each.address, each) for each in self.host.addresses.values()),
                  *((each.pattern, each) for each in self.host.patterns.values())]  # fmt: skip
        for name, state in states:
            for side, counts in (("in", state.ingress), ("out", state.egress)):
                for field in ("deliveries", "bytes", "aborted", *OUTCOMES):
                    found[name, side, field] = getattr(counts, field)
        return found

    def differences(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        seen = self.observed()
        return {key: (seen[key], self.ledger[key]) for key in seen | self.ledger if seen[key] != self.ledger[key]}

    def count(self, address: str, side: str, field: str, size: int) -> None:
        for name in (address, f"{address.partition('.')[0]}.#"):
            self.ledger[name, side, "deliveries"] += 1
            self.ledger[name, side, field] += 1
            self.ledger[name, side, "bytes"] += size

    def exchange(self, stack: ExitStack, address: str) -> None:
        """Messages from r1 to the last router, with the outcome that the address is named for. Links stay."""
        kind, _, outcome = address.partition(".")
        given, is_stored = OUTCOMES[outcome], kind in ("queue", "topic")
        consumer, producer = (stack.enter_context(WireClient(self.mesh.port(at))) for at in (self.last, "r1"))
        self.clients += consumer, producer
        consumer.receiver(address, credit=SENT)
        sender = producer.sender(address)
        numbers = [producer.send_when_due(sender, "x" * size, is_settled=given is None) for size in range(SENT)]
        both = (consumer, producer)
        wait_with(both, lambda: len(consumer.arrived) >= SENT, f"{SENT} deliveries of {address}")
        for each in consumer.arrived:
            self.count(address, "in", "accepted" if is_stored and given is not None else outcome, len(each.data))
            self.count(address, "out", "accepted" if is_stored and given is None else outcome, len(each.data))
            if not each.is_settled:
                each.settle(ACCEPTED if given is None else given)
        consumer.step()
        if given is not None:
            wait_with(both, lambda: not any(map(producer.is_unsettled, numbers)), f"all of {address} to be settled")


@pytest.fixture(params=[(1, "full", "true"), (3, "summary", "true"), (3, "full", "false")], ids=str)
def watched(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path, *request.param)
    yield made
    made.rings.close()
    made.mesh.down()


def test_all_types_and_outcomes_count_as_clients_had_them_and_a_lost_router_takes_no_sum_away(watched: Watched) -> None:
    addresses = [".".join(parts) for parts in product(TYPES, OUTCOMES)]
    with ExitStack() as stack:
        for address in addresses:
            watched.exchange(stack, address)
            watched.step_clients()
        watched.wait(lambda: watched.step_clients() or not watched.differences(), "sums as in the ledger")
        user, nodes = watched.host.users["anonymous"], watched.host.nodes
        clients = {name: node.clients for name, node in nodes.items() if node.clients}
        count = len(addresses)
        assert clients == ({"r1": 2 * count} if watched.last == "r1" else {"r1": count, watched.last: count})
        assert (user.connections, user.links) == (2 * count, 2 * count)
        ends = {each.address: (each.producers, each.consumers) for each in watched.host.addresses.values()}
        assert ends == dict.fromkeys(addresses, (1, 1))
        # A node counts the probe messages of `amqpmesh up`, too.
        assert 0 <= nodes["r1"].ingress.deliveries - count * SENT <= MOST_PROBES
        assert 0 <= nodes[watched.last].egress.deliveries - count * SENT <= MOST_PROBES
        watched.mesh.kill("r1")
        watched.wait(lambda: nodes["r1"].state != "running" or not nodes["r1"].clients, "the loss of r1")
        sums = watched.ledger
        assert all(watched.observed()[key] == value for key, value in sums.items() if key[0].endswith("#"))
    watched.wait(lambda: user.connections == user.links == 0, "the end of all clients")
    watched.wait(lambda: nodes["r1"].state == "running", "r1 to run again")
    assert all(watched.observed()[key] == value for key, value in sums.items() if key[0].endswith("#"))
    assert watched.told == []
