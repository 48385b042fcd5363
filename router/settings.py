"""The settings of a router: its part of the topology, the properties that it sends to peers, and limits for peers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from addressing.address import DEFAULT_SPACE
from router.connections.brokers import BrokerSettings
from router.connections.peers import EDGE_ROLE, INSTANCE, ROLE, ROUTER_ROLE
from router.forwarding.settings import ForwardingSettings
from router.routing.settings import RoutingSettings
from wire.endpoint import MAX_SESSIONS_BETWEEN_NODES, EndpointSettings

if TYPE_CHECKING:
    from addressing.topology.model import Topology

_MAX_LINKS_BETWEEN_NODES = 1_000_000


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """The settings of each connection that a client listener accepts: limits, and the space of its addresses."""

    endpoint: EndpointSettings
    link_capacity: int = 1000
    max_message_bytes: int = 0
    sender_stall_timeout_s: float = 10.0
    """How long a client may leave a message half sent, though it could send the rest; then the router ends the link."""
    space: str = DEFAULT_SPACE
    """The space of all clients of the listener. The topology file has no key for it yet."""


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """One router's part of the topology. ``costs``: neighbor -> cost of the connection in the topology."""

    router_id: str
    mesh: str
    instance: int
    listeners: Mapping[str, ListenerSettings]
    """Listeners for clients, by name; a connection accepted by any other listener is one to the node port."""
    node_endpoint: EndpointSettings
    costs: Mapping[str, int] = field(default_factory=dict)
    connectors: Mapping[str, str] = field(default_factory=dict)
    """Name of a connector -> id of the router that the connector dials."""
    is_edge: bool = False
    """True for an edge router: all ``connectors`` lead to uplinks, and ``costs`` lists the uplinks by preference."""
    edges: frozenset[str] = frozenset()
    """The edge routers of the mesh."""
    brokers: Mapping[str, BrokerSettings] = field(default_factory=dict)
    subscription_broker: str | None = None
    routing: RoutingSettings = field(default_factory=RoutingSettings)
    forwarding: ForwardingSettings = field(default_factory=ForwardingSettings)


def routing_settings(topology: Topology) -> RoutingSettings:
    return RoutingSettings(hello_interval_s=topology.hello_interval_s, hello_max_age_s=topology.hello_max_age_s)


def node_endpoint_settings(router_id: str, instance: int, version: str, *, is_edge: bool = False) -> EndpointSettings:
    """Return the settings of a router's connections to other routers and operators: its own id, role and limits."""
    role = EDGE_ROLE if is_edge else ROUTER_ROLE
    return EndpointSettings(
        container_id=router_id,
        max_sessions=MAX_SESSIONS_BETWEEN_NODES,
        max_links=_MAX_LINKS_BETWEEN_NODES,
        properties={"product": "amqpmesh", "version": version, ROLE: role, INSTANCE: instance},
        offered_capabilities=("ANONYMOUS-RELAY",),
    )
