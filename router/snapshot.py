"""Snapshots, frozen views of a router's state, for people and tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from router.connections.brokers import BrokerConnectionSnapshot
from router.connections.peers import RouterConnection
from router.forwarding.settings import AddressSnapshot
from router.routing.snapshot import RoutingSnapshot


@dataclass(frozen=True, slots=True)
class ConnectionSnapshot:
    number: int
    kind: str
    container_id: str | None
    remote_address: str
    user: str | None
    listener: str | None
    is_open: bool
    sessions: int
    links: int
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class RouterView:
    """Another router as seen from this router.

    ``cost`` and ``path`` are of the cheapest path, None while the other router is out of reach. ``connection_cost``:
    the cost of the direct connection to a neighbor, which may be dearer than the cheapest path.
    """

    router: str
    is_neighbor: bool
    connection_cost: int | None
    cost: int | None
    path: tuple[str, ...] | None
    instance: int
    addresses: int


@dataclass(frozen=True, slots=True)
class RouterNodeSnapshot:
    router_id: str
    mesh: str
    connections: tuple[ConnectionSnapshot, ...]
    addresses: tuple[AddressSnapshot, ...]
    brokers: tuple[BrokerConnectionSnapshot, ...]
    transit_circuits: int
    routers: tuple[RouterView, ...]
    mode: str
    active_uplink: str | None
    """For an edge router: the interior router to which all its circuits lead; None without one."""
    edges: tuple[str, ...]
    """Edge routers whose active uplink is this router."""


def connection_snapshot(connection: RouterConnection) -> ConnectionSnapshot:
    endpoint = connection.endpoint
    return ConnectionSnapshot(
        number=connection.number,
        kind=connection.kind,
        container_id=endpoint.remote.container_id if endpoint.remote else None,
        remote_address=endpoint.peer.remote_address,
        user=endpoint.peer.user,
        listener=endpoint.peer.listener,
        is_open=endpoint.is_open,
        sessions=endpoint.session_count,
        links=len(endpoint.links),
        bytes_in=endpoint.bytes_in,
        bytes_out=endpoint.bytes_out,
    )


def router_views(known: RoutingSnapshot) -> Iterator[RouterView]:
    for router, each in known.routers.items():
        if router != known.router_id:
            neighbor = known.neighbors.get(router)
            connection_cost = neighbor.cost if neighbor is not None else None
            counts = each.cost, each.path, each.instance, len(each.addresses)
            yield RouterView(router, neighbor is not None, connection_cost, *counts)
