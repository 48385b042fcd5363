"""Real router nodes with real engines over in-memory pipes, in virtual time.

A `World` is stepped: `run(seconds)` moves bytes and fires deadlines in order of time; nothing sleeps, nothing is random
but for what the seed decides.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from addressing.book import AddressBook
from addressing.permissions import Permissions
from addressing.topology import Listener, Topology
from broker.node import BrokerNode
from broker.store.sqlite import SqliteStore
from mesh_tests.sim.clients import Sender, SimClient
from router.brokers import BrokerSettings
from router.node import RouterNode
from router.settings import ListenerSettings, RouterSettings, node_endpoint_settings, routing_settings
from wire.endpoint import Endpoint, EndpointSettings, Peer
from wire.node import Abort, ConnectorSpec, DropConnector, OpenConnector

STORES: list[SqliteStore] = []
"""Of all brokers there were in the running test: three open files each."""


@dataclass(eq=False)
class Pipe:
    """A connection: two (node, endpoint) ends; bytes take ``delay_s`` each way."""

    ends: tuple[tuple[Any, Endpoint], tuple[Any, Endpoint]]
    delay_s: float
    is_cut: bool = False


class World:
    """Virtual time starts at 1,000 s."""

    def __init__(self, delay_s: float = 0.001) -> None:
        self.now = 1000.0
        self.delay_s = delay_s
        self.pipes: list[Pipe] = []
        self.nodes: list[Any] = []
        self.log: list[Any] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def at(self, when: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (when, next(self._order), action))

    def join(self, one: tuple[Any, Endpoint], other: tuple[Any, Endpoint]) -> Pipe:
        pipe = Pipe((one, other), self.delay_s)
        self.pipes.append(pipe)
        self.flush()
        return pipe

    def cut(self, pipe: Pipe, *, silently: bool = False) -> None:
        """The connection is gone; both nodes hear of it now, unless silently: then when it is cut once more."""
        if pipe not in self.pipes:
            return
        pipe.is_cut = True
        if silently:
            return
        self.pipes.remove(pipe)
        for node, endpoint in pipe.ends:
            self._disconnect(node, endpoint, "cut")
        self.on_cut(pipe)
        self.flush()

    def abort(self, endpoint: Endpoint, reason: str) -> None:
        """One end drops its connection; the other hears of it, if they are not cut from each other."""
        pipe = next(pipe for pipe in self.pipes if any(end is endpoint for _, end in pipe.ends))
        (node,) = (node for node, end in pipe.ends if end is endpoint)
        self._disconnect(node, endpoint, reason)
        if all(end.is_freed for _, end in pipe.ends):
            self.cut(pipe)
        elif not pipe.is_cut:
            self.at(self.now + pipe.delay_s, lambda: self.cut(pipe))

    def _disconnect(self, node: Any, endpoint: Endpoint, reason: str) -> None:
        if node in self.nodes and not endpoint.is_freed:
            node.on_disconnected(endpoint, reason, self.now)
        endpoint.free()

    def on_cut(self, pipe: Pipe) -> None:
        """A connection was lost: whoever keeps it up dials again."""

    def carry_out(self) -> bool:
        """Do what nodes ask of their driver; True when there was anything."""
        return False

    def flush(self) -> None:
        """Put every byte that a node wants to send on its way."""
        moved = True
        while moved:
            moved = self.carry_out()
            for node in self.nodes:
                if isinstance(node, SimBroker):
                    moved |= node.serve_disk()
            for pipe in list(self.pipes):
                for end, (node, endpoint) in enumerate(pipe.ends):
                    if node not in self.nodes or endpoint.is_freed:
                        continue
                    while data := endpoint.output():
                        moved = True
                        if not pipe.is_cut:
                            self.at(self.now + pipe.delay_s, self._arrival(pipe, 1 - end, data))
                    if endpoint.has_waiters and endpoint.has_room:
                        node.dirty.clear()
                        node.on_writable(endpoint, self.now)
                        moved |= bool(node.dirty)

    def _arrival(self, pipe: Pipe, end: int, data: bytes) -> Callable[[], None]:
        def arrive() -> None:
            node, endpoint = pipe.ends[end]
            if pipe.is_cut or node not in self.nodes or endpoint.is_finished:
                return
            endpoint.receive(data)
            node.on_input(endpoint, self.now)

        return arrive

    def run(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        end = self.now + seconds
        while True:
            self.flush()
            deadlines = [(deadline, node) for node in self.nodes if (deadline := node.next_deadline()) is not None]
            next_deadline = min((deadline for deadline, _ in deadlines), default=end)
            next_arrival = self._queue[0][0] if self._queue else end
            when = min(next_deadline, next_arrival)
            if when >= end:
                break
            self.now = max(self.now, when)
            if next_arrival <= next_deadline:
                heapq.heappop(self._queue)[2]()
            else:
                for deadline, node in deadlines:
                    if deadline <= self.now:
                        node.on_time(self.now)
        self.now = end

    def run_until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Let time pass until ``condition``; AssertionError when ``seconds`` were not enough."""
        end = self.now + seconds
        while not condition():
            assert self.now < end, f"not within {seconds} s of virtual time"
            self.run(0.005)

    def send(self, sender: Sender, body: bytes = b"x", *, settled: bool = False) -> int:
        """Send one message as soon as there is credit for it; its number."""
        self.run_until(lambda: sender.link.credit > 0)
        return sender.send(body, settled=settled)


class SimMesh(World):
    """Routers and brokers of a topology, joined as it says; brokers have real stores in ``folder``."""

    def __init__(self, topology: dict[str, Any], folder: Path | None = None, delay_s: float = 0.001) -> None:
        super().__init__(delay_s)
        self.topology = Topology.model_validate(topology)
        self.folder = folder
        self.brokers: dict[str, SimBroker] = {}
        self._wanted: dict[tuple[Any, str], Pipe | None] = {}
        for name in self.topology.brokers:
            self.start_broker(name)
        self.routers: dict[str, RouterNode] = {}
        self.trunks: dict[frozenset[str], Pipe] = {}
        self._instances = itertools.count(1)
        self._tokens = itertools.count(1)
        for name in self.topology.routers:
            self.start(name)
        for edge in self.topology.edges():
            self.link(edge.dialer, edge.to)

    def start(self, name: str) -> RouterNode:
        instance = next(self._instances)
        is_edge = self.topology.routers[name].is_edge
        settings = RouterSettings(
            router_id=name,
            mesh=self.topology.mesh,
            instance=instance,
            listeners={"clients": self._listener(name)},
            node_endpoint=node_endpoint_settings(name, instance, "0", is_edge=is_edge),
            costs=self.topology.costs_at(name),
            connectors={f"router:{edge.to}": edge.to for edge in self.topology.edges() if edge.dialer == name},
            is_edge=is_edge,
            edges=frozenset(self.topology.edge_routers),
            routing=routing_settings(self.topology),
        )
        node = RouterNode(
            replace(settings, brokers={broker: _broker_settings(broker) for broker in self.topology.brokers_at(name)}),
            AddressBook(self.topology),
            Permissions(self.topology),
            lambda event: self.log.append((self.now, name, event)),
            lambda: f"t{next(self._tokens)}",
        )
        self.routers[name] = node
        self.nodes.append(node)
        return node

    def _listener(self, name: str) -> ListenerSettings:
        """The first that the topology gives the router."""
        declared = self.topology.routers[name].listeners
        listener = declared[0] if declared else Listener()
        return ListenerSettings(EndpointSettings(name), listener.link_capacity, listener.max_message_bytes)

    # Brokers
    def start_broker(self, name: str) -> None:
        assert self.folder is not None
        broker = self.brokers[name] = SimBroker(self, name, self.folder / name)
        self.nodes.append(broker)

    def kill_broker(self, name: str) -> None:
        """As kill -9: what was not committed is gone."""
        broker = self.brokers.pop(name)
        self.nodes.remove(broker)
        broker.store.close()
        STORES.remove(broker.store)
        for pipe in [pipe for pipe in self.pipes if any(end[0] is broker for end in pipe.ends)]:
            self.cut(pipe)

    def carry_out(self) -> bool:
        """What the routers ask of their driver: connections to brokers, kept up for as long as they are wanted."""
        moved = False
        for router in self.routers.values():
            while router.commands:
                command = router.commands.pop(0)
                moved = True
                if isinstance(command, OpenConnector):
                    self._wanted[router, command.spec.name] = None
                    self._dial(router, command.spec.name)
                elif isinstance(command, Abort):
                    self.abort(command.endpoint, command.reason)
                elif isinstance(command, DropConnector):
                    pipe = self._wanted.pop((router, command.name), None)
                    if pipe is not None:
                        self.cut(pipe)
        return moved

    def _dial(self, router: RouterNode, connector: str) -> None:
        self.at(self.now + 0.002, lambda: self._on_dialed(router, connector))

    def _on_dialed(self, router: RouterNode, connector: str) -> None:
        if router not in self.nodes or self._wanted.get((router, connector), self) is not None:
            return
        broker = self.brokers.get(connector.split(":")[1])
        if broker is None:
            router.on_connect_failed(connector, "refused", self.now)
            self.at(self.now + 0.1, lambda: self._on_dialed(router, connector))
            return
        peer = Peer(is_mesh=True)
        pipe = self.join(
            (router, router.on_connected(connector, peer, self.now)),
            (broker, broker.on_accepted("nodes", peer, self.now)),
        )
        self._wanted[router, connector] = pipe

    def on_cut(self, pipe: Pipe) -> None:
        for (router, connector), known in list(self._wanted.items()):
            if known is pipe:
                self._wanted[router, connector] = None
                self._dial(router, connector)

    def link(self, dialer: str, to: str) -> Pipe:
        one, other = self.routers[dialer], self.routers[to]
        ends = (
            (one, one.on_connected(f"router:{to}", Peer(is_mesh=True), self.now)),
            (other, other.on_accepted("nodes", Peer(is_mesh=True), self.now)),
        )
        pipe = self.trunks[frozenset({dialer, to})] = self.join(*ends)
        return pipe

    def cut_trunk(self, one: str, other: str) -> None:
        self.cut(self.trunks.pop(frozenset({one, other})))

    def kill(self, name: str) -> None:
        """The router is gone, and every connection of it."""
        node = self.routers.pop(name)
        pipes = [pipe for pipe in self.pipes if any(end[0] is node for end in pipe.ends)]
        for pipe in pipes:
            pipe.is_cut = True
        # Its last act, of which nobody hears: to let go of its deliveries, since all routers here share one process.
        for pipe in pipes:
            self.cut(pipe)
        self.nodes.remove(node)

    def client(
        self,
        router: str,
        container_id: str = "client",
        *,
        user: str | None = None,
        kind: type[SimClient] = SimClient,
        **settings: Any,
    ) -> SimClient:
        """``settings``: those of its endpoint, such as ``window_frames``."""
        node = self.routers[router]
        client = kind(self, container_id, **settings)
        self.nodes.append(client)
        client.pipe = self.join((client, client.endpoint), (node, node.on_accepted("clients", Peer(user), self.now)))
        return client

    def converge(self) -> None:
        """Until every interior router reaches every other, and every edge has its active uplink."""
        self.run_until(lambda: all(self._has_converged(name) for name in self.routers))

    def _has_converged(self, name: str) -> bool:
        found = self.routers[name].snapshot()
        if self.topology.routers[name].is_edge:
            return found.active_uplink is not None
        others = sum(other in self.routers for other in self.topology.interior_routers) - 1
        return sum(view.cost is not None for view in found.routers) == others


class SimBroker(BrokerNode):
    """A broker with a real store, whose disk takes no virtual time."""

    def __init__(self, world: World, name: str, folder: Path) -> None:
        self.world = world
        self.store = SqliteStore(folder)
        STORES.append(self.store)
        super().__init__(
            name,
            world.topology,  # type: ignore[attr-defined]
            self.store.load(),
            now=world.now,
            wall_offset_s=1_700_000_000.0,
            secret=f"secret-{world.now}",
            log=lambda event: world.log.append((world.now, name, event)),
        )

    def serve_disk(self) -> bool:
        fetches = self.take_fetches()
        if fetches:
            self.on_fetched(fetches, self.store.read([fetch.wanted for fetch in fetches]), self.world.now)
        batch = self.take_batch()
        if batch is not None:
            self.store.commit(batch)
            self.on_committed(self.world.now)
        return bool(fetches) or batch is not None


def _broker_settings(name: str) -> BrokerSettings:
    endpoint = EndpointSettings("mesh")
    return BrokerSettings(name, endpoint, lambda connector: ConnectorSpec(connector, "sim", 1))
