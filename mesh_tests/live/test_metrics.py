"""Metrics of a running mesh are what clients counted, and stay when a node is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import pytest
from proton import Disposition, Message, Timeout
from proton.utils import BlockingConnection, SendException

from addressing.pattern import PatternMap
from addressing.topology.loader import load_topology
from mesh.watch.expected_nodes import expected_nodes
from mesh.watch.health import healthz_mesh, livez, readyz
from mesh.watch.host_model import HostModel
from mesh.watch.host_rings import HostRings
from mesh.watch.metrics import exposition
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.unit.mesh.watch.scraped import Scraped
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: metered
routers:
  r1: {listeners: [{}], connect: [r2]}
  r2: {listeners: [{}]}
brokers:
  b1: {data: ./b1, routers: [r2]}
addresses:
  rpc.#: anycast
  prices: multicast
  orders: queue
"""
WAIT_S = 20.0


class Watched:
    """The observer of a mesh's rings, stepped by the test."""

    def __init__(self, mesh: RunningMesh) -> None:
        topology = load_topology(mesh.topology_file)
        patterns = {pattern: (pattern, str(each.type)) for pattern, each in topology.addresses.items()}
        self.model = HostModel(PatternMap(patterns).find, patterns.values())
        self.told: list[str] = []
        self.rings = HostRings(topology.work_dir / "rings", self.model, self.told.append, self.told.append)
        self.expected = expected_nodes(topology)

    def scrape(self) -> Scraped:
        while self.rings.step():
            pass
        return Scraped(exposition(self.model, self.expected))

    def wait(self, name: str, wanted: float, **labels: str) -> Scraped:
        """The first scrape in which the series has the value ``wanted``."""
        last: Scraped | None = None

        def has_value() -> Scraped | None:
            nonlocal last
            last = self.scrape()
            return last if last.value(name, **labels) == wanted else None

        try:
            return wait_until(has_value, WAIT_S, f"{name} {labels} to be {wanted}")
        except AssertionError as error:
            found = "\n".join(line for line in (last.text if last else "").splitlines() if line.startswith(name))
            raise AssertionError(f"{error}; found\n{found}") from None


@pytest.fixture
def watched(start_mesh: Callable[[str], RunningMesh]) -> Iterator[tuple[RunningMesh, Watched]]:
    mesh = start_mesh(TOPOLOGY)
    watched = Watched(mesh)
    yield mesh, watched
    watched.rings.close()


def settle(receiver, count: int, outcome: int = Disposition.ACCEPTED) -> None:
    for _ in range(count):
        receiver.receive(WAIT_S)
        receiver.settle(outcome)


def pump_until_done(connection: BlockingConnection, sent: Future) -> Future:
    """Write what the connection has to write, until the other connection's ``sent`` is done."""

    def is_done() -> bool:
        with suppress(Timeout):
            connection.wait(sent.done, timeout=0.05)
        return sent.done()

    wait_until(is_done, WAIT_S, "the outcome of a message")
    return sent


def test_metrics_are_what_clients_counted(watched: tuple[RunningMesh, Watched]) -> None:
    mesh, observer = watched
    senders, receivers = BlockingConnection(mesh.url("r1")), BlockingConnection(mesh.url("r2"))
    body = Message(body=b"x" * 100)
    rpc = receivers.create_receiver("rpc.tea", credit=5)
    prices = [receivers.create_receiver("prices", credit=10, name=name) for name in ("left", "right")]
    to_rpc, to_prices, to_orders = (senders.create_sender(name) for name in ("rpc.tea", "prices", "orders"))
    for _ in range(7):
        to_orders.send(body)
    orders = receivers.create_receiver("orders", credit=3)
    settle(orders, 3)
    with ThreadPoolExecutor(1) as sending:
        for _ in range(6):
            sent = sending.submit(to_prices.send, body)
            for each in prices:
                settle(each, 1)
            pump_until_done(receivers, sent).result()
        for number in range(5):
            sent = sending.submit(to_rpc.send, body)
            settle(rpc, 1, Disposition.REJECTED if number == 4 else Disposition.ACCEPTED)
            if number < 4:
                pump_until_done(receivers, sent).result()
        with pytest.raises(SendException):
            pump_until_done(receivers, sent).result()

    anycast = {"pattern": "rpc.#", "type": "anycast"}
    deliveries = "amqpmesh_pattern_deliveries_total"
    observer.wait(deliveries, 1, **anycast, direction="in", outcome="rejected")
    observer.wait("amqpmesh_pattern_queue_dequeued_total", 3, node="b1", pattern="orders")
    found = observer.wait("amqpmesh_pattern_queue_messages", 4, node="b1", pattern="orders")
    multicast, queue = {"pattern": "prices", "type": "multicast"}, {"pattern": "orders", "type": "queue"}
    for direction in ("in", "out"):
        assert found.value(deliveries, **anycast, direction=direction, outcome="accepted") == 4
        assert found.value(deliveries, **anycast, direction=direction, outcome="rejected") == 1
    assert found.value(deliveries, **multicast, direction="in", outcome="accepted") == 6
    assert found.value(deliveries, **multicast, direction="out", outcome="accepted") == 12
    assert found.value(deliveries, **queue, direction="in", outcome="accepted") == 7
    assert found.value(deliveries, **queue, direction="out", outcome="accepted") == 3
    assert found.value("amqpmesh_pattern_latency_seconds_count", **anycast) == 5
    assert found.value("amqpmesh_pattern_queue_enqueued_total", node="b1", pattern="orders") == 7
    assert found.value("amqpmesh_pattern_producers", **queue) == 1
    assert found.value("amqpmesh_pattern_consumers", **multicast) == 2
    assert found.value("amqpmesh_node_clients", node="r1", role="router") == 1
    assert found.value("amqpmesh_node_clients", node="r2", role="router") == 1
    for connection in (senders, receivers):
        connection.close()
    found = observer.wait("amqpmesh_pattern_producers", 0, **queue)
    assert found.value(deliveries, **queue, direction="in", outcome="accepted") == 7


def test_a_killed_router_is_down_and_its_counters_stay(watched: tuple[RunningMesh, Watched]) -> None:
    mesh, observer = watched
    client = BlockingConnection(mesh.url("r1"))
    sender = client.create_sender("orders")
    for _ in range(5):
        sender.send(Message(body=b"x"))
    accepted = {"pattern": "orders", "type": "queue", "direction": "in", "outcome": "accepted"}
    observer.wait("amqpmesh_neighbor_up", 1, node="r1", neighbor="r2")
    observer.wait("amqpmesh_pattern_deliveries_total", 5, **accepted)
    wait_until(lambda: observer.scrape() and readyz(observer.model, observer.expected).is_well, WAIT_S, "readiness")
    mesh.kill("r1")
    lost = observer.wait("amqpmesh_node_up", 0, node="r1", role="router")
    assert lost.value("amqpmesh_node_state", node="r1", role="router", state="lost") == 1
    assert lost.value("amqpmesh_node_clients", node="r1", role="router") is None
    assert not livez(observer.model, observer.model.utc_s, "r1").is_well
    assert livez(observer.model, observer.model.utc_s).is_well
    again = observer.wait("amqpmesh_node_up", 1, node="r1", role="router")
    assert again.value("amqpmesh_pattern_deliveries_total", **accepted) == 5
    wait_until(
        lambda: observer.scrape() and healthz_mesh(observer.model, observer.expected).is_well, WAIT_S, "a well mesh"
    )
