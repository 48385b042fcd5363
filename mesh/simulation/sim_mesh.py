"""The routers and embedded brokers of a topology, connected as the topology says, in virtual time.

SimMesh does the work of the nodes' drivers: connections, commands and disks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from addressing.address import DEFAULT_SPACE
from addressing.book import SpaceBooks
from addressing.operator_rights import OperatorRights
from addressing.permissions import Permissions
from addressing.topology.model import DeclaredAddress, Listener, Topology
from addressing.topology.queries import Edge
from mesh.simulation.clients import SimClient, SimSender
from mesh.simulation.sim_broker import WALL_OFFSET_S, SimBroker
from mesh.simulation.world import Pipe, World
from recording.records import Recorder
from router.connections.brokers import BrokerSettings
from router.node import RouterNode
from router.settings import ListenerSettings, RouterSettings, node_endpoint_settings, routing_settings
from wire.endpoint import MAX_SESSIONS_BETWEEN_NODES, EndpointSettings, Peer
from wire.node import Abort, ConnectorSpec, DropConnector, OpenConnector

_ACCEPTED = Peer(is_mesh=True, listener="nodes")
"""A node of the mesh, as the node that accepted its connection sees it."""
DIAL_S = 0.002
REDIAL_S = 0.1


class SimMesh(World):
    """A mesh in virtual time. Embedded brokers have real stores in ``folder``; existing brokers are always down.

    ``recorder_of`` returns the flight recorder for a node that starts; without ``recorder_of``, no node records.
    ``spaces`` are the declarations of further spaces; each router has a listener for the clients of each.
    """

    def __init__(
        self,
        topology: Topology | dict[str, Any],
        folder: Path | None = None,
        delay_s: float = 0.001,
        recorder_of: Callable[[str], Recorder] | None = None,
        spaces: Mapping[str, Mapping[str, DeclaredAddress]] | None = None,
    ) -> None:
        super().__init__(delay_s)
        self._recorder_of = recorder_of or _no_recorder
        self.topology = topology if isinstance(topology, Topology) else Topology.model_validate(topology)
        self.folder = folder
        self.brokers: dict[str, SimBroker] = {}
        self._wanted: dict[tuple[Any, str], Pipe | None] = {}
        self._edges = edges_by_router(self.topology)
        self._edge_routers = frozenset(self.topology.edge_routers)
        self._spaces = spaces or {}
        self._permissions = Permissions(self.topology)
        self._rights = OperatorRights(self.topology)
        for name, broker in self.topology.brokers.items():
            if broker.is_embedded:
                self.start_broker(name)
        self.routers: dict[str, RouterNode] = {}
        self.trunks: dict[frozenset[str], Pipe] = {}
        self._instances = itertools.count(1)
        self._tokens = itertools.count(1)
        for name in self.topology.routers:
            self.start(name)
        for edge in self.topology.edges():
            self.link(edge.dialer, edge.to)

    # Routers
    def start(self, name: str) -> RouterNode:
        instance = next(self._instances)
        is_edge = self.topology.routers[name].is_edge
        settings = RouterSettings(
            router_id=name,
            mesh=self.topology.mesh,
            instance=instance,
            listeners={
                _listener_of(space): replace(self._listener(name), space=space)
                for space in (DEFAULT_SPACE, *self._spaces)
            },
            node_endpoint=node_endpoint_settings(name, instance, "0", is_edge=is_edge),
            costs=self.topology.costs_at(name),
            connectors={f"router:{edge.to}": edge.to for edge in self._edges[name] if edge.dialer == name},
            is_edge=is_edge,
            edges=self._edge_routers,
            subscription_broker=self.topology.subscription_broker,
            routing=routing_settings(self.topology),
        )
        recorder = self._recorder_of(name)
        recorder.set_wall_offset(WALL_OFFSET_S)
        node = RouterNode(
            replace(settings, brokers={broker: _broker_settings(broker) for broker in self.topology.brokers_at(name)}),
            SpaceBooks(self.topology, self._spaces),
            self._permissions,
            self._rights,
            lambda event: self.log.append((self.now, name, event)),
            lambda: f"t{next(self._tokens)}",
            recorder,
        )
        self.routers[name] = node
        self.add(node)
        return node

    def tell_second(self, name: str) -> None:
        """Call ``on_second`` of the router or broker ``name``, upon which the node makes its records of a second.

        A real driver does this every second.
        """
        (self.brokers.get(name) or self.routers[name]).on_second(self.now)

    def _listener(self, name: str) -> ListenerSettings:
        """Return the settings of the router's first listener in the topology, or defaults if it has none."""
        declared = self.topology.routers[name].listeners
        listener = declared[0] if declared else Listener()
        endpoint = EndpointSettings(name)
        if "max_frame_bytes" in listener.model_fields_set:
            endpoint = replace(endpoint, max_frame_bytes=listener.max_frame_bytes)
        return ListenerSettings(
            endpoint, listener.link_capacity, listener.max_message_bytes, listener.sender_stall_timeout_s
        )

    def kill(self, name: str) -> None:
        """End the router as kill -9 would, with all its connections; the other ends see lost connections."""
        node = self.routers.pop(name)
        pipes = self.pipes_of(node)
        for pipe in pipes:
            pipe.is_cut = True
        # All pipes are marked as cut first: no byte that the router sends from here on reaches a peer. ``cut`` tells
        # the router, too, of each loss, so that the router frees its deliveries, which would stay in memory: all
        # simulated routers share a process.
        for pipe in pipes:
            self.cut(pipe)
        self.remove(node)

    def link(self, dialer: str, to: str) -> Pipe:
        one, other = self.routers[dialer], self.routers[to]
        ends = (
            (one, one.on_connected(f"router:{to}", Peer(is_mesh=True), self.now)),
            (other, other.on_accepted("nodes", _ACCEPTED, self.now)),
        )
        pipe = self.trunks[frozenset({dialer, to})] = self.join(*ends)
        return pipe

    def edges_of(self, name: str) -> list[Edge]:
        """Return the router's connections to other routers as the topology has them, without those that were removed.

        ``cut_trunk`` and a crash remove a connection.
        """
        return [edge for edge in self._edges[name] if frozenset({edge.dialer, edge.to}) in self.trunks]

    def cut_trunk(self, one: str, other: str) -> None:
        self.cut(self.trunks.pop(frozenset({one, other})))

    # Brokers
    def start_broker(self, name: str) -> None:
        assert self.folder is not None
        recorder = self._recorder_of(name)
        broker = SimBroker(self, self.topology, name, self.folder / name, recorder, self._spaces)
        self.brokers[name] = broker
        self.add(broker)

    def kill_broker(self, name: str) -> None:
        """End the broker as kill -9 would: changes that are not committed are lost, and its connections are cut."""
        broker = self.brokers.pop(name)
        self.remove(broker)
        broker.close()
        for pipe in self.pipes_of(broker):
            self.cut(pipe)

    def close(self) -> None:
        """Close the files of all brokers' stores; else they stay open until Python collects the mesh's cycles."""
        for broker in self.brokers.values():
            broker.close()

    # Here SimMesh does the work that a driver does for a real node.
    def on_touched(self, node: Any) -> bool:
        """Carry out one command of a router, or a broker's disk work, as a driver would; return False if there is none.

        A connection to a broker is dialed again after a loss, until the router drops its connector.
        """
        if isinstance(node, SimBroker):
            return node.serve_disk()
        if not isinstance(node, RouterNode) or not node.commands:
            return False
        match node.commands.pop(0):
            case OpenConnector(spec):
                self._wanted[node, spec.name] = None
                self._dial(node, spec.name)
            case Abort(endpoint, reason):
                self.abort(endpoint, reason)
            case DropConnector(name):
                pipe = self._wanted.pop((node, name), None)
                if pipe is not None:
                    self.cut(pipe)
        return True

    def _dial(self, router: RouterNode, connector: str) -> None:
        self.at(self.now + DIAL_S, lambda: self._on_dialed(router, connector), router)

    def _on_dialed(self, router: RouterNode, connector: str) -> None:
        if router not in self.nodes or self._wanted.get((router, connector), self) is not None:
            return
        broker = self.brokers.get(connector.split(":")[1])
        if broker is None:
            router.on_connect_failed(connector, "refused", self.now)
            self.at(self.now + REDIAL_S, lambda: self._on_dialed(router, connector), router)
            return
        pipe = self.join(
            (router, router.on_connected(connector, Peer(is_mesh=True), self.now)),
            (broker, broker.on_accepted("nodes", _ACCEPTED, self.now)),
        )
        self._wanted[router, connector] = pipe

    def on_cut(self, pipe: Pipe) -> None:
        for (router, connector), known in list(self._wanted.items()):
            if known is pipe:
                self._wanted[router, connector] = None
                self._dial(router, connector)

    # Clients
    def client(
        self,
        router: str,
        container_id: str = "client",
        *,
        user: str | None = None,
        space: str = DEFAULT_SPACE,
        kind: type[SimClient] = SimClient,
        **settings: Any,
    ) -> SimClient:
        """Connect a new client to ``router``. ``settings`` are EndpointSettings, such as ``window_frames``."""
        client = kind(self, container_id, **settings)
        self.connect_client(client, router, user, space)
        return client

    def connect_client(self, client: SimClient, router: str, user: str | None, space: str = DEFAULT_SPACE) -> None:
        node = self.routers[router]
        self.add(client)
        listener = _listener_of(space)
        endpoint = node.on_accepted(listener, Peer(user, listener=listener), self.now)
        client.pipe = self.join((client, client.endpoint), (node, endpoint))

    def send(self, sender: SimSender, body: bytes = b"x", *, settled: bool = False) -> int:
        """Let virtual time pass until ``sender`` has credit, then send a message; return the message's number."""
        self.run_until(lambda: sender.link.credit > 0)
        return sender.send(body, settled=settled)

    def converge(self, within_s: float = 30.0) -> None:
        """Run until every interior router has a path to every other, and every edge router has an active uplink.

        Raises AssertionError if ``within_s`` of virtual time were not enough.
        """
        self.run_until(lambda: all(self._has_converged(name) for name in self.routers), within_s)

    def _has_converged(self, name: str) -> bool:
        found = self.routers[name].snapshot()
        if name in self._edge_routers:
            return found.active_uplink is not None
        others = sum(other in self.routers for other in self.topology.interior_routers) - 1
        return sum(view.cost is not None for view in found.routers) == others


def _listener_of(space: str) -> str:
    return f"clients of {space}" if space else "clients"


def _no_recorder(name: str) -> Recorder:
    return Recorder()


def edges_by_router(topology: Topology) -> dict[str, list[Edge]]:
    edges: dict[str, list[Edge]] = {name: [] for name in topology.routers}
    for edge in topology.edges():
        edges[edge.dialer].append(edge)
        edges[edge.to].append(edge)
    return edges


def _broker_settings(name: str) -> BrokerSettings:
    endpoint = EndpointSettings("mesh", max_sessions=MAX_SESSIONS_BETWEEN_NODES)
    return BrokerSettings(name, endpoint, lambda connector: ConnectorSpec(connector, "sim", 1))
