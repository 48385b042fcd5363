"""Entity types of management for what is attached to a node: connections, links, addresses.

Counts of deliveries have the meaning of the model (docs/reference/entities.md), and are those of one node.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from addressing.address import AREA_PREFIX
from addressing.kinds import AddressKind
from addressing.priority import DEFAULT_PRIORITY
from mesh.watch.management.entity_types import (
    PREFIX,
    EntityType,
    FieldAttributes,
    ManagedNode,
    ValueType,
    fixed,
    head,
    number_of,
    unknown,
)
from mesh.watch.management.entity_types import Attribute as _A
from recording.entities import CONNECTION, LINK

if TYPE_CHECKING:
    from mesh.watch.states import NodeAddress, ObservedConnection, ObservedLink

_STRING, _BOOLEAN, _INT, _UINT = ValueType.STRING, ValueType.BOOLEAN, ValueType.INT, ValueType.UINT
_LONG, _ULONG, _STRINGS, _MAP = ValueType.LONG, ValueType.ULONG, ValueType.STRINGS, ValueType.MAP
_STORED: Final = (AddressKind.QUEUE.value, AddressKind.TOPIC.value)


def address_key(text: str | None) -> str | None:
    """Return the text of an address as Dispatch has it in its tables: with a letter for its class, and the phase.

    `M0` is an address of clients, `L` a dynamic address or another of one router. None: the link has no address.
    """
    if text is None:
        return None
    if text.startswith(AREA_PREFIX):
        return "L" + text[len(AREA_PREFIX) :].partition("/")[2]
    return "M0" + text


def distribution_of(treatment: str | None) -> str | None:
    """Return Dispatch's word for a treatment: clients' links to queues and topics are tied to links at the broker."""
    return "linkBalanced" if treatment in _STORED else treatment


# Connections
_connection = FieldAttributes(CONNECTION)
_ROLES: Final = {"client": "normal", "operator": "normal", "router": "inter-router", "edge": "edge",
                 "broker": "route-container"}  # fmt: skip


def _role(view: ManagedNode, connection: ObservedConnection) -> str:
    if view.node.role == "edge" and connection.role == "router":
        return "edge"
    return _ROLES.get(connection.role, connection.role)


def _mechanism(view: ManagedNode, connection: ObservedConnection) -> str | None:
    if connection.mechanism is not None:
        return connection.mechanism
    has_certificate = connection.tls_version is not None and connection.role != "client"
    return "EXTERNAL" if has_certificate or _has_user(connection) else None


def _has_user(connection: ObservedConnection) -> bool:
    return connection.user is not None and connection.user.name != "anonymous"


def _strength(view: ManagedNode, connection: ObservedConnection) -> int:
    cipher = connection.tls_cipher or ""
    return 256 if "256" in cipher or "CHACHA20" in cipher else 128 if "128" in cipher else 0


def _last_delivery_age(view: ManagedNode, connection: ObservedConnection) -> float | None:
    last = max(connection.incoming.last_at or 0.0, connection.outgoing.last_at or 0.0)
    return view.age_of(last) if last else None


def _connection_rows(view: ManagedNode) -> Collection[ObservedConnection]:
    return view.node.connections.values()


_CONNECTION_NAME: Final = PREFIX + "connection"
CONNECTION_TYPE: Final = EntityType(
    _CONNECTION_NAME,
    "An AMQP connection of the node. Who views only some addresses sees the connections of the own user.",
    (
        *head(_CONNECTION_NAME, lambda view, each: number_of(each.id),
              lambda view, each: f"connection/{each.remote_address}"),
        _connection("host", _STRING, "remote_address"),
        _A("role", _STRING, "normal: of a client; inter-router, edge, route-container: of a router, an edge router, a "
           "broker", _role, "role"),
        fixed("protocol", _STRING, "amqp", "amqp, always"),
        _A("dir", _STRING, "in: the node accepted the connection; out: the node dialed the peer",
           lambda view, each: {"incoming": "in", "outgoing": "out"}.get(each.direction or ""), "direction"),
        _connection("container", _STRING, "container"),
        _A("sasl", _STRING, "SASL mechanism of the login; EXTERNAL, too, for who is known by a certificate without a "
           "SASL layer", _mechanism, "mechanism"),
        _A("isAuthenticated", _BOOLEAN, "whether the peer logged in, as anybody at all, or is known by a certificate",
           lambda view, each: _mechanism(view, each) is not None),
        _connection("user", _STRING, "user"),
        _A("isEncrypted", _BOOLEAN, "whether the connection has TLS", lambda view, each: each.tls_version is not None),
        _connection("sslProto", _STRING, "tls_version"),
        _connection("sslCipher", _STRING, "tls_cipher"),
        fixed("properties", _MAP, {}, "empty: nodes do not record the properties of the peer's OPEN"),
        _A("sslSsf", _LONG, "bits of the cipher's key", _strength),
        unknown("tenant", _STRING),
        _A("ssl", _BOOLEAN, "whether the connection has TLS", lambda view, each: each.tls_version is not None),
        fixed("opened", _BOOLEAN, True, "true: nodes record connections once they are open"),
        fixed("active", _BOOLEAN, True, "true: nodes record connections once they are open"),
        fixed("adminStatus", _STRING, "enabled", "enabled; deleted in an UPDATE closes the connection"),
        fixed("operStatus", _STRING, "up", "up, always"),
        _A("uptimeSeconds", _UINT, "time since the connection opened; at least so long, if the observer started later",
           lambda view, each: view.age_of(each.opened_at or view.node.counted_since), "opened_at"),
        _A("lastDlvSeconds", _UINT, "time since the last delivery over the connection; null before the first",
           _last_delivery_age),
        fixed("enableProtocolTrace", _BOOLEAN, False, "false, always"),
        fixed("hideOnGui", _BOOLEAN, False, "false, always"),
    ),
    _connection_rows,
    lambda view, each: number_of(each.id),
    lambda viewer, each: viewer.sees_own(each.user_name),
    ("adminStatus",),
    ignores_unknown=True,
)  # fmt: skip

# Links
_link = FieldAttributes(LINK)
_LINK_TYPES: Final = {"producer": "endpoint", "consumer": "endpoint", "broker": "endpoint", "circuit": "inter-router"}


def _link_type(view: ManagedNode, link: ObservedLink) -> str:
    if link.role == "circuit" and link.connection is not None and link.connection.role == "edge":
        return "edge-downlink"
    return _LINK_TYPES.get(link.role, "endpoint")


def _capacity(view: ManagedNode, link: ObservedLink) -> int | None:
    if not link.is_producer or not view.is_router:
        return None
    capacities = {listener.link_capacity for listener in view.topology.routers[view.name].listeners}
    return capacities.pop() if len(capacities) == 1 else None


def _starved(view: ManagedNode, link: ObservedLink) -> float:
    return link.starved_s if link.waits_for is not None else 0


def _priority(view: ManagedNode, pattern: str | None) -> int:
    entry = view.topology.addresses.get(pattern) if pattern is not None else None
    return DEFAULT_PRIORITY if entry is None else entry.priority


def _link_rows(view: ManagedNode) -> Collection[ObservedLink]:
    return [link for link in view.node.links.values() if not link.is_ended]


_LINK_NAME: Final = PREFIX + "router.link"
LINK_TYPE: Final = EntityType(
    _LINK_NAME,
    "A link of the node, other than those of management itself, of probes and of the link state. Who views only some "
    "addresses sees the links of the own user.",
    (
        *head(_LINK_NAME, lambda view, each: str(each.number), lambda view, each: each.name),
        _link("linkName", _STRING, "name"),
        _A("linkType", _STRING, "endpoint: of a client or broker; inter-router, edge-downlink: between routers",
           _link_type, "role"),
        _A("linkDir", _STRING, "in or out, as the node sees it",
           lambda view, each: "in" if each.direction == "incoming" else "out", "direction"),
        _A("owningAddr", _STRING, "address with class and phase; null for a producer without a fixed address",
           lambda view, each: address_key(each.address_text), "address"),
        _A("capacity", _UINT, "most credit of a client's incoming link, if all listeners of the router have the same; "
           "else null", _capacity),
        unknown("peer", _STRING, "the link at the broker that a client's link is tied to is not recorded"),
        unknown("undeliveredCount", _ULONG, "not recorded: messages wait at their senders, for want of credit"),
        _link("unsettledCount", _ULONG, "unsettled"),
        _link("deliveryCount", _ULONG, "deliveries"),
        _A("connectionId", _STRING, "identity of the connection",
           lambda view, each: None if each.connection is None else number_of(each.connection.id), "connection"),
        fixed("adminStatus", _STRING, "enabled", "enabled; deleted in an UPDATE closes the link"),
        fixed("operStatus", _STRING, "up", "up, always"),
        _link("presettledCount", _ULONG, "settled"),
        _link("droppedPresettledCount", _ULONG, "missed"),
        _link("acceptedCount", _ULONG, "accepted"),
        _link("rejectedCount", _ULONG, "rejected"),
        _link("releasedCount", _ULONG, "released"),
        _link("modifiedCount", _ULONG, "modified"),
        _link("deliveriesDelayed1Sec", _ULONG, "delayed_1s"),
        _link("deliveriesDelayed10Sec", _ULONG, "delayed_10s"),
        _A("deliveriesStuck", _ULONG, "deliveries that wait for an outcome, of a link that stands still for 10 s",
           lambda view, each: each.unsettled or 0, "unsettled"),
        _link("creditAvailable", _UINT, "credit"),
        _A("zeroCreditSeconds", _UINT, "time that the link has been without credit since it was attached; 0 while it "
           "does not wait for credit", _starved, "starved_s"),
        unknown("ingressHistogram", _STRINGS, "not recorded"),
        _A("priority", _UINT, "priority of the address", lambda view, each: _priority(view, each.pattern_text)),
        _A("settleRate", _UINT, "deliveries per second over the last seconds", lambda view, each: each.counts.rate,
           "rate"),
    ),
    _link_rows,
    lambda view, each: str(each.number),
    lambda viewer, each: viewer.sees_own(each.user_name),
    ("adminStatus",),
    ignores_unknown=True,
)  # fmt: skip

# Addresses
_ADDRESS_NAME: Final = PREFIX + "router.address"


def _key(view: ManagedNode, there: NodeAddress) -> str | None:
    return address_key(there.address.address)


def _remote_routers(view: ManagedNode, there: NodeAddress) -> list[str]:
    text, nodes = there.address.address, view.host.nodes.values()
    found = ((node.name, node.addresses.get(text)) for node in nodes if node is not view.node)
    return sorted(name for name, other in found if other is not None and other.consumers)


def _to_fallback(view: ManagedNode, there: NodeAddress) -> int:
    pattern = there.address.pattern_text
    entry = view.topology.addresses.get(pattern) if pattern is not None else None
    return there.to_brokers if entry is not None and entry.fallback is not None else 0


def _address(name: str, type_: ValueType, meaning: str, attribute: str) -> _A:
    return _A(name, type_, meaning, lambda view, there: getattr(there, attribute))


ADDRESS_TYPE: Final = EntityType(
    _ADDRESS_NAME,
    "An address that links of clients, brokers or routers have at the router. Operators see the addresses that they "
    "may view.",
    (
        *head(_ADDRESS_NAME, _key),
        _A("key", _STRING, "class letter, phase and text: M0orders", _key),
        _A("distribution", _STRING, "closest, balanced, multicast; linkBalanced for queues and topics",
           lambda view, there: distribution_of(there.address.treatment), "treatment"),
        fixed("inProcess", _UINT, 0, "0: a router has no consumers of its own"),
        _address("subscriberCount", _UINT, "links of clients that receive", "consumers"),
        _A("remoteCount", _UINT, "other routers on the observer's host with links of clients that receive",
           lambda view, there: len(_remote_routers(view, there))),
        _address("containerCount", _UINT, "links to and from brokers", "brokers"),
        _A("remoteHostRouters", _STRINGS, "the routers that `remoteCount` counts", _remote_routers),
        _address("deliveriesIngress", _ULONG, "deliveries from clients", "ingress"),
        _address("deliveriesEgress", _ULONG, "deliveries to clients", "egress"),
        _address("deliveriesTransit", _ULONG, "deliveries from a router to a router; copies count each", "transit"),
        fixed("deliveriesToContainer", _ULONG, 0, "0: a router has no consumers of its own"),
        fixed("deliveriesFromContainer", _ULONG, 0, "0: a router has no producers of its own"),
        _address("deliveriesEgressRouteContainer", _ULONG, "deliveries to brokers", "to_brokers"),
        _address("deliveriesIngressRouteContainer", _ULONG, "deliveries from brokers", "from_brokers"),
        _A("deliveriesRedirectedToFallback", _ULONG, "deliveries that left to the broker of the address's fallback "
           "queue; 0 without such a queue. Those that go by way of another router are not counted", _to_fallback),
        unknown("transitOutstanding", _STRINGS, "not recorded"),
        unknown("trackedDeliveries", _LONG, "not recorded"),
        _A("priority", _INT, "priority of the address",
           lambda view, there: _priority(view, there.address.pattern_text)),
    ),
    lambda view: view.node.addresses.values(),
    _key,
    lambda viewer, there: viewer.may_view(there.address.address),
    ignores_unknown=True,
)  # fmt: skip
