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
from mesh.deploy.pid_file import PidFile
from mesh.deploy.workdir import WorkDir
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
WAIT_S = 30.0
Series = tuple[str, frozenset[tuple[str, str]]]


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
        return self.wait_all({series(name, **labels): wanted})

    def wait_all(self, wanted: dict[Series, float]) -> Scraped:
        """The first scrape in which all series have the values ``wanted``: nodes write sums once a second."""
        last: Scraped | None = None

        def has_values() -> Scraped | None:
            nonlocal last
            last = self.scrape()
            return None if differing(last, wanted) else last

        try:
            return wait_until(has_values, WAIT_S, "metrics to be as wanted")
        except AssertionError as error:
            raise AssertionError(f"{error}: {differing(last, wanted) if last else 'no scrape'}") from None


def series(name: str, **labels: str) -> Series:
    return name, frozenset(labels.items())


def differing(scraped: Scraped, wanted: dict[Series, float]) -> dict[Series, tuple[float | None, float]]:
    """The values found and wanted, where they differ."""
    return {
        each: (scraped.values.get(each), value) for each, value in wanted.items() if scraped.values.get(each) != value
    }


@pytest.fixture
def watched(start_mesh: Callable[[str], RunningMesh]) -> Iterator[tuple[RunningMesh, Watched]]:
    mesh = start_mesh(TOPOLOGY)
    watched = Watched(mesh)
    yield mesh, watched
    watched.rings.close()


def deliveries(pattern: str, type_: str, direction: str, **counts: int) -> dict[Series, float]:
    return {
        series(
            "amqpmesh_pattern_deliveries_total", pattern=pattern, type=type_, direction=direction, outcome=outcome
        ): count
        for outcome, count in counts.items()
    }


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

    counters = {
        **deliveries("rpc.#", "anycast", "in", accepted=4, rejected=1),
        **deliveries("rpc.#", "anycast", "out", accepted=4, rejected=1),
        **deliveries("prices", "multicast", "in", accepted=6, rejected=0),
        **deliveries("prices", "multicast", "out", accepted=12, rejected=0),
        **deliveries("orders", "queue", "in", accepted=7, released=0),
        **deliveries("orders", "queue", "out", accepted=3, rejected=0),
        series("amqpmesh_pattern_latency_seconds_count", pattern="rpc.#", type="anycast"): 5,
        series("amqpmesh_pattern_queue_enqueued_total", node="b1", pattern="orders"): 7,
        series("amqpmesh_pattern_queue_dequeued_total", node="b1", pattern="orders"): 3,
        series("amqpmesh_pattern_queue_messages", node="b1", pattern="orders"): 4,
    }
    ends = {
        series("amqpmesh_pattern_producers", pattern="orders", type="queue"): 1,
        series("amqpmesh_pattern_consumers", pattern="prices", type="multicast"): 2,
        series("amqpmesh_node_clients", node="r1", role="router"): 1,
        series("amqpmesh_node_clients", node="r2", role="router"): 1,
    }
    observer.wait_all({**counters, **ends})
    for connection in (senders, receivers):
        connection.close()
    quiet = observer.wait_all(dict.fromkeys(ends, 0))
    assert differing(quiet, counters) == {}


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
    hold = PidFile(WorkDir(load_topology(mesh.topology_file).work_dir).hold_file("r1"))
    # The supervisor would start it again before anybody looks.
    with hold:
        assert hold.acquire()
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
