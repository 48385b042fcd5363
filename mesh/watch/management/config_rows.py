"""The topology's settings of one node in the form of Dispatch's configuration: listeners, connectors, routes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from addressing.topology.queries import Authentication

if TYPE_CHECKING:
    from addressing.topology.model import DeclaredAddress, Listener
    from mesh.watch.management.entity_types import ManagedNode
    from mesh.watch.states import ObservedConnection

NODES_LISTENER = "nodes"
"""Name of the listener for other nodes and operators."""


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A direction of a queue or topic at a broker. ``direction``: in, from clients; out, to clients.

    For a queue on several brokers, ``direction`` is as the router sees its own link to the broker.
    """

    pattern: str
    entry: DeclaredAddress
    broker: str
    direction: str

    @property
    def name(self) -> str:
        return f"{self.broker}/{self.pattern}/{self.direction}"

    @property
    def phase(self) -> int:
        """Messages enter a queue on several brokers in phase 0, and leave it in phase 1."""
        return 1 if self.direction == "in" else 0


@dataclass(frozen=True, slots=True)
class ListenerRow:
    """A port of the node; ``listener`` is None for the port for other nodes."""

    name: str
    host: str
    port: int
    listener: Listener | None

    @property
    def is_encrypted(self) -> bool:
        return self.listener is not None and self.listener.tls is not None

    @property
    def asks_for_login(self) -> bool:
        return self.listener is not None and self.listener.authentication is Authentication.REQUIRED


@dataclass(frozen=True, slots=True)
class ConnectorRow:
    """A connection that the node dials, to a router or broker ``to``. ``cost``: None for a broker."""

    to: str
    host: str
    port: int
    role: str
    cost: int | None
    is_up: bool


def link_routes(view: ManagedNode) -> list[RouteRow]:
    """Return the queues and topics on one broker, if the router is to be connected to this broker.

    Empty for a broker.
    """
    return _routes(view, is_sharded=False)


def auto_links(view: ManagedNode) -> list[RouteRow]:
    """Return the queues on several brokers, for each broker that the router is connected to; empty for a broker."""
    return _routes(view, is_sharded=True)


def _routes(view: ManagedNode, *, is_sharded: bool) -> list[RouteRow]:
    if not view.is_router:
        return []
    topology, there = view.topology, view.topology.brokers_at(view.name)
    return [
        RouteRow(pattern, entry, broker, direction)
        for pattern, entry in topology.addresses.items()
        for broker in topology.brokers_of(entry)
        if broker in there and (len(topology.brokers_of(entry)) > 1) is is_sharded
        for direction in ("in", "out")
    ]


def listeners(view: ManagedNode) -> list[ListenerRow]:
    topology, name = view.topology, view.name
    if not view.is_router:
        broker = topology.brokers[name]
        return [ListenerRow(NODES_LISTENER, broker.host, broker.port, None)]
    router = topology.routers[name]
    clients = [
        ListenerRow(f"clients-{index}", each.host, each.port, each) for index, each in enumerate(router.listeners)
    ]
    return [*clients, ListenerRow(NODES_LISTENER, router.host, router.port, None)]


def connectors(view: ManagedNode) -> list[ConnectorRow]:
    """Return the connections that a router dials; empty for a broker."""
    if not view.is_router:
        return []
    topology, name = view.topology, view.name
    role = "edge" if topology.routers[name].is_edge else "inter-router"
    rows = []
    for edge in topology.edges():
        if edge.dialer == name:
            router, neighbor = topology.routers[edge.to], view.node.neighbors.get(edge.to)
            cost = neighbor.cost if neighbor is not None else edge.cost
            is_up = any(each.container == edge.to for each in view.node.connections.values())
            rows.append(ConnectorRow(edge.to, edge.host or router.host, edge.port or router.port, role, cost, is_up))
    for to in topology.brokers_at(name):
        broker = topology.brokers[to]
        location = broker.location
        host, port = (location.host, location.port) if location is not None else (broker.host, broker.port)
        rows.append(ConnectorRow(to, host, port, "route-container", None, is_broker_up(view, to)))
    return rows


def is_broker_up(view: ManagedNode, broker: str) -> bool:
    """Say whether the router has a connection to ``broker``; to any broker, if it is an existing one."""
    is_embedded = view.topology.brokers[broker].is_embedded
    return any(_is_to(each, broker, is_embedded) for each in view.node.connections.values())


def _is_to(connection: ObservedConnection, broker: str, is_embedded: bool) -> bool:
    return connection.role == "broker" and (connection.container == broker or not is_embedded)
