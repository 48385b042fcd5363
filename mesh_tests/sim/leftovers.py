"""What is left in the nodes of a simulated mesh that belongs to nobody, once every client is gone and all is quiet?

Of a router: connections of clients and to brokers for them, links, sessions, circuits, claims, timers, groups, detaches
that wait. Of a broker: connections, links and temporary queues. Of the driver: connectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from broker.node import BrokerNode
from mesh.simulation.sim_mesh import SimMesh
from mesh.simulation.world import Pipe
from router.circuits.neighbor import CONTROL, NeighborConnection
from router.clients.clients import ClientConnection
from router.connections.broker_connection import BrokerConnection
from router.connections.peers import RouterConnection
from router.node import RouterNode
from wire.endpoint import Endpoint

QUIET_S = 24.0
"""A circuit without producers lasts 10 s, a connection to a broker without links 2 s. The circuit behind an edge router
begins its 10 s when the circuit of the edge has ended."""


def leftovers(mesh: SimMesh) -> list[str]:
    """A sentence for each; nothing when all belongs to somebody."""
    found = [text for name, router in mesh.routers.items() for text in _of_router(name, router)]
    found += [text for name, broker in mesh.brokers.items() for text in _of_broker(mesh, name, broker)]
    found += [text for pipe in mesh.pipes for text in _of_pipe(pipe)]
    found += [
        f"connector {name!r} is kept up"
        for node, name in mesh._wanted
        if node in mesh.nodes and name.count(":") > 1 and name not in _claimed(node)
    ]
    return found


def timers(mesh: SimMesh) -> Counter[str]:
    """Pending calls, by router and by what makes them: to be compared with those before."""
    return Counter(
        f"{name}: {getattr(timer.action, '__qualname__', timer.action)}"
        for name, router in mesh.routers.items()
        for _, _, timer in router._timers._heap
        if timer.action is not None
    )


def _claimed(router: RouterNode) -> set[str]:
    sites = router._brokers._sites
    return {f"broker:{name}:{route}" for name, site in sites.items() for route in site.routes.names}


def _of_router(name: str, router: RouterNode) -> Iterator[str]:
    for broker, site in router._brokers._sites.items():
        for route in site.routes.names:
            yield f"{name} keeps connection {route} to {broker}, with {site.routes.claim_count} claims"
    for connection in router._connections.values():
        yield from _of_connection(name, connection)
    if router._circuits.transit_count:
        yield f"{name} counts {router._circuits.transit_count} circuits that pass through"
    for address, phase, _ in router._addresses._entries:
        yield f"{name} keeps a group for {address!r}, phase {phase}"
    for who in router._leaving.leavers:
        yield f"{name} waits for {who}"
    for user, count in router._services.connection_limits._counts.items():
        yield f"{name} counts {count} connections of user {user}"


def _of_connection(name: str, connection: RouterConnection) -> Iterator[str]:
    if isinstance(connection, ClientConnection):
        yield f"{name} keeps the connection of client {connection.describe()}"
    if isinstance(connection, BrokerConnection) and connection.route is not None:
        yield f"{name} is connected to a broker for {connection.route}"
    endpoint = connection.endpoint
    for link in endpoint.links:
        if link.name != CONTROL:
            yield f"{name} has link {link.name!r} at {connection.describe()}"


def _of_pipe(pipe: Pipe) -> Iterator[str]:
    """Sessions that no pool of either end keeps for the next link."""
    pooled = sum(map(_pooled_count, (endpoint for _, endpoint in pipe.ends)))
    for _, endpoint in pipe.ends:
        idle = sum(not session.link_count for session in endpoint._sessions.values())
        if idle > pooled:
            yield f"{idle - pooled} sessions without links at {endpoint.owner and endpoint.owner.describe()}"


def _pooled_count(endpoint: Endpoint) -> int:
    if not isinstance(endpoint.owner, NeighborConnection | BrokerConnection):
        return 0
    shared = endpoint.owner.sessions._shared.values()
    return sum(not session.link_count and not session.is_over for sessions in shared for session in sessions)


def _of_broker(mesh: SimMesh, name: str, broker: BrokerNode) -> Iterator[str]:
    found = broker.snapshot()
    expected = len(mesh.topology.brokers[name].routers or ())
    if found.connection_count != expected:
        yield f"{name} has {found.connection_count} connections, {expected} routers are attached to it"
    if found.link_count:
        yield f"{name} has {found.link_count} links"
    for queue in found.queues:
        if "temp" in queue.address:
            yield f"{name} keeps {queue.address!r}"
