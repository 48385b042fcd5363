"""REST, metrics, `$management`, `top` and `status` of a running mesh all show what the clients sent and received.

The clients keep a ledger of their own, for each type of address and each outcome. In meshes of one, three and seven
routers, some of them edge routers, each view has the numbers of the ledger, once nothing moves any more.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from proton.utils import LinkDetached

from mesh_tests.live.management_client import managing
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.outcomes import BY_FIELD as OUTCOMES
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.unit.mesh.watch.scraped import Scraped
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED

ROUTERS = {
    1: ["r1: {}"],
    3: ["r1: {connect: [r2]}", "r2: {}", "e3: {mode: edge, connect: [r2]}"],
    7: [
        "e1: {mode: edge, connect: [r2]}",
        "r2: {connect: [r3]}",
        "r3: {connect: [r4]}",
        "r4: {connect: [r5]}",
        "r5: {connect: [r6]}",
        "r6: {connect: [r2]}",
        "e7: {mode: edge, connect: [r4]}",
    ],
}
BROKERS_AT = {1: "r1", 3: "r2", 7: "r6"}
TOPOLOGY = """
mesh: views
watch: "on"
node_tls: false
routers: {{{ROUTERS}}}
brokers: {{b1: {{routers: [{AT}]}}, b2: {{routers: [{AT}]}}}}
addresses:
  anycast.#: anycast
  multicast.#: multicast
  queue.#: {{type: queue, broker: b1}}
  shards.#: {{type: queue, brokers: [b1, b2]}}
  topic.#: {{type: topic, broker: b2}}
"""
TYPES = ("anycast", "multicast", "queue", "shards", "topic")
FIELDS = ("deliveries", "bytes", "aborted", *OUTCOMES)
SENT = 10
QUIET_S = 60.0
Ledger = Counter[tuple[str, str, str]]
"""Counts by address or pattern, `in` or `out`, and field. Fields without a count are not in it."""
MANAGED = {"deliveryCount": "deliveries", "presettledCount": "settled"} | {
    f"{outcome}Count": outcome for outcome in OUTCOMES if outcome != "settled"
}


def pattern_of(address: str) -> str:
    return f"{address.partition('.')[0]}.#"


class Traffic:
    """Clients at the first and the last router whose links stay, and the ledger of what they sent and received."""

    def __init__(self, mesh: RunningMesh, first: str, last: str, stack: ExitStack) -> None:
        self._mesh, self._stack = mesh, stack
        self.first, self.last = first, last
        self.ledger: Ledger = Counter()
        self.clients: list[WireClient] = []

    def _client(self, router: str) -> WireClient:
        client = self._stack.enter_context(WireClient(self._mesh.port(router)))
        self.clients.append(client)
        return client

    def step(self) -> None:
        """Send heartbeats: routers close connections that are silent."""
        for each in self.clients:
            each.step()

    def _count(self, address: str, side: str, field: str, size: int) -> None:
        for name in (address, pattern_of(address)):
            self.ledger[name, side, "deliveries"] += 1
            self.ledger[name, side, field] += 1
            self.ledger[name, side, "bytes"] += size

    def exchange(self, address: str) -> None:
        """Send messages to ``address``, and settle them with the outcome that the address is named for."""
        kind, _, outcome = address.partition(".")
        given, is_stored = OUTCOMES[outcome], kind in ("queue", "shards", "topic")
        consumer, producer = self._client(self.last), self._client(self.first)
        # What a queue gets back is offered again, but not to this consumer, which has no more credit.
        consumer.receiver(address, credit=SENT)
        sender = producer.sender(address)
        numbers = [producer.send_when_due(sender, "x" * size, is_settled=given is None) for size in range(SENT)]
        both = (consumer, producer)
        wait_with(both, lambda: len(consumer.arrived) >= SENT, f"{SENT} deliveries of {address}")
        for each in consumer.arrived:
            # What is sent settled to a queue on several brokers counts at the brokers' router by the broker's outcome.
            is_told = given is not None or (kind == "shards" and self.first == self.last)
            is_accepted = is_stored and is_told
            self._count(address, "in", "accepted" if is_accepted else outcome, len(each.data))
            self._count(address, "out", "accepted" if is_stored and given is None else outcome, len(each.data))
            if not each.is_settled:
                each.settle(ACCEPTED if given is None else given)
        consumer.step()
        if given is not None:
            wait_with(both, lambda: not any(map(producer.is_unsettled, numbers)), f"all of {address} to be settled")


class Views:
    """The counts that each view of a mesh shows, in the form of the ledger."""

    def __init__(self, mesh: RunningMesh, routers: list[str], addresses: list[str]) -> None:
        self._mesh, self._routers = mesh, routers
        self._names = {*addresses, *map(pattern_of, addresses)}

    def _items(self, path: str) -> list[dict[str, Any]]:
        status, found = self._mesh.observed(path)
        assert status == 200, found
        return list(found["items"])

    def _of_rows(self, rows: list[dict[str, Any]], name: str) -> Ledger:
        return Counter(
            {
                (row[name], side, field): row[f"{side}_{field}"]
                for row in rows
                for side in ("in", "out")
                for field in FIELDS
                if row[name] in self._names and row[f"{side}_{field}"]
            }
        )

    def rest(self) -> Ledger:
        return self._of_rows(self._items("/api/addresses?limit=500"), "address") + self._of_rows(
            self._items("/api/patterns?limit=500"), "pattern"
        )

    def top(self) -> Ledger:
        found = [json.loads(self._mesh.run("top", "addresses", "--once", "--json", "-n", "500"))["rows"]]
        return self._of_rows(found[0], "address")

    def _scraped(self, path: str) -> Scraped:
        with urlopen(self._mesh.observer_url + path, timeout=QUIET_S) as answer:
            return Scraped(answer.read().decode())

    def metrics(self) -> Ledger:
        """The sums of patterns, and the detailed series of addresses."""
        found: Ledger = Counter()
        for path, prefix, label in (
            ("/metrics", "amqpmesh_pattern", "pattern"),
            ("/metrics/detailed?family=address", "amqpmesh_detailed_address", "address"),
        ):
            for (name, labels), value in self._scraped(path).values.items():
                of = dict(labels)
                if of.get(label) not in self._names or not value:
                    continue
                if name == f"{prefix}_bytes_total":
                    found[of[label], of["direction"], "bytes"] += int(value)
                elif name == f"{prefix}_deliveries_total":
                    found[of[label], of["direction"], of["outcome"]] += int(value)
                    if of["outcome"] != "aborted":
                        found[of[label], of["direction"], "deliveries"] += int(value)
        return found

    def management(self) -> Ledger:
        """The links of clients, added up by address."""
        found: Ledger = Counter()
        for router in self._routers:
            with managing(self._mesh.url(router)) as client:
                clients = {each["identity"] for each in client.query("connection") if each["role"] == "normal"}
                for link in client.query("router.link"):
                    address = str(link["owningAddr"]).removeprefix("M0")
                    if link["connectionId"] not in clients or address not in self._names:
                        continue
                    for attribute, field in MANAGED.items():
                        if link[attribute]:
                            found[address, link["linkDir"], field] += int(link[attribute])
        return found

    def status(self) -> tuple[int, dict[str, int]]:
        """The number of clients' connections, and the messages in each queue and subscription that has some."""
        nodes = json.loads(self._mesh.run("status", "--json", "-c", "-q"))["nodes"]
        snapshots = [each["snapshot"] for each in nodes]
        clients = sum(each["kind"] == "client" for one in snapshots for each in one.get("connections", []))
        waiting: Counter[str] = Counter()
        for each in (queue for one in snapshots for queue in one.get("queues", [])):
            waiting[each["address"]] += each["queue"]["available_count"] + each["queue"]["acquired_count"]
        return clients, dict(+waiting)

    def clients_and_queues(self) -> tuple[int, dict[str, int]]:
        waiting: Counter[str] = Counter()
        for queue in self._items("/api/queues?limit=500"):
            waiting[queue["address"]] += queue["depth"]
        return sum(each["clients"] for each in self._items("/api/nodes")), dict(+waiting)


def addresses_only(ledger: Ledger, *fields: str) -> Ledger:
    return Counter(
        {key: count for key, count in ledger.items() if not key[0].endswith("#") and (not fields or key[2] in fields)}
    )


def differences(shown: object, expected: object) -> object:
    """The counts that differ, each as (shown, expected)."""
    if not (isinstance(shown, Counter) and isinstance(expected, Counter)):
        return (shown, expected)
    return {key: (shown[key], expected[key]) for key in {**shown, **expected} if shown[key] != expected[key]}


def wait_equal(traffic: Traffic, view: Callable[[], object], expected: object, name: str) -> None:
    """Until the view is as expected; nodes write their sums once a second. A difference is told when time is over."""
    last: list[object] = []

    def is_equal() -> bool:
        traffic.step()
        last[:] = [view()]
        return last[0] == expected

    try:
        wait_until(is_equal, QUIET_S, f"{name} to be as in the ledger")
    except AssertionError as error:
        raise AssertionError(f"{error}: {differences(last[0], expected)}") from None


@pytest.fixture(params=sorted(ROUTERS), ids=str)
def mesh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningMesh]:
    count = request.param
    made = RunningMesh(TOPOLOGY.format(ROUTERS=", ".join(ROUTERS[count]), AT=BROKERS_AT[count]), tmp_path)
    yield made
    made.down()


def test_all_views_have_the_numbers_of_the_clients(mesh: RunningMesh) -> None:
    nodes = json.loads(mesh.run("status", "--json"))["nodes"]
    routers = sorted(each["name"] for each in nodes if each["kind"] == "router")
    first, last = min(routers, key=lambda name: name[1:]), max(routers, key=lambda name: name[1:])
    addresses = [".".join(parts) for parts in product(TYPES, OUTCOMES)]
    views = Views(mesh, routers, addresses)
    with ExitStack() as stack:
        traffic = Traffic(mesh, first, last, stack)
        for address in addresses:
            traffic.exchange(address)
            traffic.step()
        ledger = traffic.ledger
        wait_equal(traffic, views.rest, ledger, "REST")
        wait_equal(traffic, views.metrics, ledger, "metrics")
        wait_equal(traffic, views.top, addresses_only(ledger), "top")

        def managed() -> Ledger | None:
            try:
                return views.management()
            except LinkDetached:  # The observer has no link to this router yet.
                return None

        wait_equal(traffic, managed, addresses_only(ledger, *MANAGED.values()), "$management")
        # What was released or modified is in its queue or subscription again.
        waiting = {
            f"{kind}.{outcome}": SENT for kind in ("queue", "shards", "topic") for outcome in ("released", "modified")
        }
        here = (len(traffic.clients), waiting)
        wait_equal(traffic, views.status, here, "status")
        wait_equal(traffic, views.clients_and_queues, here, "clients and queues of REST")
