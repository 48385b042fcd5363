"""Run one router as a process: make settings, listeners and connectors from the router's part of the topology."""

from __future__ import annotations

import asyncio
import gc
import importlib
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from addressing.book import SpaceBooks
from addressing.operator_rights import OperatorRights
from addressing.permissions import Permissions
from addressing.topology.credentials import parse_secret
from addressing.topology.queries import Authentication, Edge
from recording.recorder import recording, seconds
from recording.records import Recorder
from recording.ring_file import RingFile
from router.clients.sole_connections import CAPABILITY as SOLE_CONNECTION
from router.clients.sole_connections import DETECTION_POLICY, STRONG, WEAK
from router.connections.brokers import BrokerSettings
from router.node import RouterNode
from router.settings import ListenerSettings, RouterSettings, node_endpoint_settings, routing_settings
from router.snapshot import RouterNodeSnapshot
from wire import log
from wire.data import as_uint
from wire.driver import Driver, DriverSnapshot
from wire.endpoint import MAX_SESSIONS, MAX_SESSIONS_BETWEEN_NODES, Endpoint, EndpointSettings
from wire.forced_end import ForcedEnd
from wire.node import ConnectorSpec, ListenerSpec
from wire.node_files import NodeFiles
from wire.sasl import Authenticator, SaslClientSettings, SaslServerSettings
from wire.transport import tls
from wire.transport.tls import MeshIdentity, Role

if TYPE_CHECKING:
    from addressing.topology.broker_settings import Broker
    from addressing.topology.model import DeclaredAddress, Listener, Topology

_NODES = "nodes"
_SESSION_WINDOW_BYTES = 4 << 20
"""Incoming window of a client's session: how many bytes its client may send before the router has read them."""
_MIN_WINDOW_FRAMES = 4


@dataclass(frozen=True, slots=True)
class RunningSnapshot:
    node: RouterNodeSnapshot
    driver: DriverSnapshot


class RunningRouter:
    """A running router, as control sockets and tests see the router: snapshots, live rows, connection costs."""

    def __init__(self, node: RouterNode, driver: Driver) -> None:
        self._node = node
        self._driver = driver

    def snapshot(self) -> RunningSnapshot:
        return RunningSnapshot(self._node.snapshot(), self._driver.snapshot())

    def set_cost(self, neighbor: str, cost: object) -> int:
        """Set this router's cost of the connection to ``neighbor`` until the router stops; return the cost before.

        Raises ValueError if ``cost`` is not valid, the topology has no such connection, or one of the two routers is an
        edge router.
        """
        before = self._node.set_cost(neighbor, cost, self._driver.now())
        self._driver.wake()
        return before

    def record_decisions(self, address: str, seconds: object) -> dict[str, Any]:
        """Note decisions about deliveries of ``address`` for ``seconds``; return how long, and the newest before.

        Raises ValueError.
        """
        answer = self._node.record_decisions(address, seconds, self._driver.now())
        self._driver.wake()
        return answer

    def decisions(self, address: str, after: int) -> dict[str, Any]:
        """Return the decisions about ``address`` behind the number ``after``. Raises ValueError if none are noted."""
        return self._node.decisions(address, after, self._driver.now())

    def check_added(self, added: Mapping[str, DeclaredAddress]) -> None:
        """Raise ValueError if the addresses that ``added`` declares cannot be added while the node runs."""
        self._node.check_added(added)

    def add_addresses(self, added: Mapping[str, DeclaredAddress]) -> None:
        """Serve the addresses that ``added`` declares, from now on and without a pause."""
        self._node.add_addresses(added, self._driver.now())
        self._driver.wake()

    def endpoint_of(self, number: int) -> Endpoint:
        """Return the endpoint of the open connection with this number. Raises ValueError if there is none."""
        return self._node.endpoint_of(number)

    def close_connection(self, number: int, forced: ForcedEnd) -> None:
        """Close a connection of the router, by its number. Raises ValueError if there is no such connection."""
        self._node.close_connection(number, forced, self._driver.now())
        self._driver.wake()

    def close_link(self, connection: int, number: int, forced: ForcedEnd) -> None:
        """Close a client's link, by its number in the records. Raises ValueError if there is no such link."""
        self._node.close_link(connection, number, forced, self._driver.now())
        self._driver.wake()

    def list_live(self) -> int:
        """Begin to write live rows into the router's ring; return the number of the slot from which on they follow.

        Raises ValueError if the router has no ring.
        """
        slot = self._node.list_live(self._driver.now())
        self._driver.wake()
        return slot


def _calm_collector() -> None:
    """Let Python's garbage collector look through young objects only, and through few of them at a time.

    A collection looks through 10,000 objects at most, which takes 2 to 3 ms; 5,000 objects more than were freed start
    a collection. Deliveries are not counted. Old objects in cycles, which links and connections leave behind, are freed
    in a full collection only: after 12,800 other collections, or when the router is calm (`mesh.deploy.memory_return`).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5000, 0, 12_800)


async def run_router(
    topology: Topology,
    name: str,
    files: NodeFiles,
    stop: asyncio.Event,
    on_started: Callable[[RunningRouter], Awaitable[None]],
) -> None:
    """Run router ``name`` of the topology until ``stop`` is set; await ``on_started`` once its listeners are open.

    Raises BindError when a port is taken, TlsSetupError when a certificate cannot be used.
    """
    if len(topology.interior_routers) > 1 and not topology.routers[name].is_edge:
        # The import takes a seventh of a second, which no message should wait for.
        importlib.import_module("networkx")
    parts = _Parts(topology, name, files)
    role = "edge" if topology.routers[name].is_edge else "router"
    with recording(topology, name, role, files.rings, log.emit) as (recorder, ring):
        books = SpaceBooks(topology)
        recorder.set_wall_offset(time.time() - time.monotonic())
        node = RouterNode(
            parts.settings(),
            books,
            Permissions(topology),
            OperatorRights(topology),
            log.emit,
            lambda: secrets.token_urlsafe(12),
            recorder,
        )
        await _serve(node, parts, recorder, ring, stop, on_started)


async def _serve(
    node: RouterNode,
    parts: _Parts,
    recorder: Recorder,
    ring: RingFile | None,
    stop: asyncio.Event,
    on_started: Callable[[RunningRouter], Awaitable[None]],
) -> None:
    driver = Driver(node, container_id=node.router_id)
    async with seconds(recorder, driver, node.on_second, node.recorded_counts, ring):
        try:
            for spec in parts.listeners():
                await driver.listen(spec)
            for connector in parts.connectors():
                driver.connect(connector)
            driver.wake()
            _calm_collector()
            await on_started(RunningRouter(node, driver))
            await stop.wait()
        finally:
            await driver.close()


class _Parts:
    """Makes the settings, listeners and connectors of one router from the topology."""

    def __init__(self, topology: Topology, name: str, files: NodeFiles) -> None:
        self._topology = topology
        self._name = name
        self._router = topology.routers[name]
        self._certificate = files.certificate
        self._instance = int(time.time())
        self._version = version("amqpmesh")

    def settings(self) -> RouterSettings:
        topology, name = self._topology, self._name
        return RouterSettings(
            router_id=name,
            mesh=topology.mesh,
            instance=self._instance,
            listeners={
                _listener_name(index): self._listener_settings(listener)
                for index, listener in enumerate(self._router.listeners)
            },
            node_endpoint=node_endpoint_settings(name, self._instance, self._version, is_edge=self._router.is_edge),
            costs=topology.costs_at(name),
            connectors={_connector_name(edge.to): edge.to for edge in topology.edges() if edge.dialer == name},
            is_edge=self._router.is_edge,
            edges=frozenset(topology.edge_routers),
            brokers={
                broker: self._broker_settings(broker, topology.brokers[broker]) for broker in topology.brokers_at(name)
            },
            subscription_broker=topology.subscription_broker,
            routing=routing_settings(topology),
        )

    def _listener_settings(self, listener: Listener) -> ListenerSettings:
        return ListenerSettings(
            endpoint=EndpointSettings(
                container_id=self._name,
                max_frame_bytes=listener.max_frame_bytes,
                idle_timeout_s=listener.idle_timeout_s,
                max_links=listener.max_links,
                window_frames=max(_SESSION_WINDOW_BYTES // listener.max_frame_bytes, _MIN_WINDOW_FRAMES),
                properties={
                    "product": "amqpmesh",
                    "version": self._version,
                    DETECTION_POLICY: as_uint(STRONG if len(self._topology.routers) == 1 else WEAK),
                },
                offered_capabilities=("ANONYMOUS-RELAY", "SHARED-SUBS", SOLE_CONNECTION),
            ),
            link_capacity=listener.link_capacity,
            max_message_bytes=listener.max_message_bytes,
            sender_stall_timeout_s=listener.sender_stall_timeout_s,
        )

    # Listeners
    def listeners(self) -> list[ListenerSpec]:
        clients = [self._client_listener(index, each) for index, each in enumerate(self._router.listeners)]
        nodes = ListenerSpec(
            name=_NODES,
            host=self._router.host,
            port=self._router.port,
            tls=tls.mesh_listener_context(self._certificate) if self._certificate else None,
            sasl=SaslServerSettings(is_tls_enough=True),
            mesh=self._topology.mesh,
        )
        return [nodes, *clients]

    def _client_listener(self, index: int, listener: Listener) -> ListenerSpec:
        secrets_of = {
            user: parse_secret(each.password)
            for user, each in self._topology.users.items()
            if each.password is not None
        }
        asks_nobody = listener.authentication is Authentication.NONE
        return ListenerSpec(
            name=_listener_name(index),
            host=listener.host,
            port=listener.port,
            tls=self._client_tls(listener),
            sasl=SaslServerSettings(
                authenticator=Authenticator({} if asks_nobody else secrets_of),
                is_required=listener.authentication is Authentication.REQUIRED,
                is_tls_enough=True,
            ),
            max_connections=listener.max_connections,
            handshake_timeout_s=listener.handshake_timeout_s,
        )

    def _client_tls(self, listener: Listener) -> Any:
        given, own = listener.tls, self._certificate
        if given is None:
            return None
        locate = self._topology.locate
        if given.cert is not None:
            key = locate(given.key) if given.key is not None else locate(given.cert)
            ca = locate(given.ca) if given.ca is not None else (own.ca if own else None)
            return tls.listener_context(locate(given.cert), key, ca)
        if own is None:
            raise tls.TlsSetupError(
                f"listener {listener.host}:{listener.port} needs a certificate of the mesh, and a mesh "
                "with node_tls false has no certificates: set cert and key"
            )
        return tls.listener_context(own.certificate, own.key, locate(given.ca) if given.ca is not None else own.ca)

    # Connectors
    def connectors(self) -> list[ConnectorSpec]:
        return [self._router_connector(edge) for edge in self._topology.edges() if edge.dialer == self._name]

    def _router_connector(self, edge: Edge) -> ConnectorSpec:
        router = self._topology.routers[edge.to]
        address = edge.host or router.host, edge.port or router.port
        return self._node_connector(_connector_name(edge.to), address, Role.ROUTER, edge.to)

    def _node_connector(self, connector: str, address: tuple[str, int], role: Role, name: str) -> ConnectorSpec:
        certificate = self._certificate
        host, port = address
        return ConnectorSpec(
            name=connector,
            host=host,
            port=port,
            tls=tls.mesh_connector_context(certificate) if certificate else None,
            expected=MeshIdentity(self._topology.mesh, role, name) if certificate else None,
            is_mesh=True,
        )

    def _broker_settings(self, name: str, broker: Broker) -> BrokerSettings:
        location = broker.location
        return BrokerSettings(
            name=name,
            needs_kind=not broker.is_embedded,
            may_share=broker.share_connections,
            endpoint=EndpointSettings(
                # All routers have one container-id at a broker, so that a durable subscriber may come back at another
                # router.
                container_id=self._topology.mesh,
                hostname=broker.hostname or (location.host if location else name),
                max_sessions=MAX_SESSIONS_BETWEEN_NODES if broker.is_embedded else MAX_SESSIONS,
                properties={"product": "amqpmesh", "version": self._version, "amqpmesh.router": self._name},
            ),
            connector=lambda connector: (
                self._existing_connector(connector, broker)
                if location is not None
                else self._node_connector(connector, (broker.host, broker.port), Role.BROKER, name)
            ),
        )

    def _existing_connector(self, connector: str, broker: Broker) -> ConnectorSpec:
        location, given = broker.location, broker.tls
        assert location is not None
        locate = self._topology.locate
        context = None
        if location.is_tls:
            context = tls.client_context(
                locate(given.ca) if given.ca is not None else None,
                locate(given.cert) if given.cert is not None else None,
                locate(given.key) if given.key is not None else None,
                verifies_host=given.verify_hostname,
            )
        return ConnectorSpec(
            name=connector,
            host=location.host,
            port=location.port,
            tls=context,
            sasl=SaslClientSettings(
                user=location.user,
                password=location.password,
                has_certificate=given.cert is not None,
                hostname=broker.hostname,
            ),
        )


def _listener_name(index: int) -> str:
    return f"clients-{index}"


def _connector_name(router: str) -> str:
    return f"router:{router}"
