"""Entity types of management that show the configuration of a node, as its topology and the node's state have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from addressing.kinds import AddressKind
from mesh.watch.management.config_rows import (
    ConnectorRow,
    RouteRow,
    auto_links,
    connectors,
    is_broker_up,
    link_routes,
    listeners,
)
from mesh.watch.management.entity_types import PREFIX, EntityType, ManagedNode, ValueType, Viewer, fixed, head, unknown
from mesh.watch.management.entity_types import Attribute as _A

if TYPE_CHECKING:
    from addressing.topology.model import DeclaredAddress

_STRING, _BOOLEAN, _INT, _UINT = ValueType.STRING, ValueType.BOOLEAN, ValueType.INT, ValueType.UINT
_LONG, _ULONG, _MAP = ValueType.LONG, ValueType.ULONG, ValueType.MAP
_Declared = tuple[str, "DeclaredAddress"]


# Addresses of the topology
def _distribution(view: ManagedNode, declared: _Declared) -> str:
    entry = declared[1]
    if entry.type is AddressKind.ANYCAST:
        return entry.distribution.value
    if entry.type is AddressKind.MULTICAST:
        return "multicast"
    return "unavailable" if entry.type.is_refused else "linkBalanced"


_ADDRESS_NAME: Final = PREFIX + "router.config.address"
ADDRESS: Final = EntityType(
    _ADDRESS_NAME,
    "An entry of the topology's addresses. Operators see the entries that they may view.",
    (
        *head(_ADDRESS_NAME, lambda view, each: each[0]),
        unknown("prefix", _STRING, "`pattern` has the entry"),
        _A("pattern", _STRING, "the declared address or pattern", lambda view, each: each[0]),
        _A("distribution", _STRING, "closest, balanced, multicast; linkBalanced for queues and topics", _distribution),
        _A("waypoint", _BOOLEAN, "whether brokers store the messages", lambda view, each: each[1].type.is_stored),
        _A("ingressPhase", _INT, "phase in which messages come from clients: 0", lambda view, each: 0),
        _A("egressPhase", _INT, "phase in which messages go to clients: 1 for a queue on several brokers",
           lambda view, each: int(len(view.topology.brokers_of(each[1])) > 1)),
        _A("priority", _INT, "priority of deliveries", lambda view, each: each[1].priority),
        _A("enableFallback", _BOOLEAN, "whether a queue takes messages without consumers",
           lambda view, each: each[1].fallback is not None),
    ),
    lambda view: list(view.topology.addresses.items()) if view.is_router else [],
    lambda view, each: each[0],
    lambda viewer, each: viewer.may_view(each[0]),
    ignores_unknown=True,
)  # fmt: skip


# Queues and topics
def _may_see_route(viewer: Viewer, row: RouteRow) -> bool:
    return viewer.may_view(row.pattern)


def _route_status(view: ManagedNode, row: RouteRow) -> str:
    return "active" if is_broker_up(view, row.broker) else "inactive"


_AUTO_LINK_NAME: Final = PREFIX + "router.config.autoLink"
AUTO_LINK: Final = EntityType(
    _AUTO_LINK_NAME,
    "A queue on several brokers, at one of them, in one direction. Operators see those that they may view.",
    (
        *head(_AUTO_LINK_NAME, lambda view, row: row.name),
        _A("address", _STRING, "the declared address", lambda view, row: row.pattern),
        _A("direction", _STRING, "out: to the broker; in: from the broker", lambda view, row: row.direction),
        _A("phase", _INT, "0 to the broker, 1 from the broker", lambda view, row: row.phase),
        _A("externalAddress", _STRING, "name at the broker, if it differs",
           lambda view, row: row.entry.broker_address or None),
        _A("containerId", _STRING, "the broker", lambda view, row: row.broker),
        unknown("connection", _STRING, "`containerId` has the broker"),
        fixed("fallback", _BOOLEAN, False, "false, always"),
        unknown("linkRef", _STRING, "links are those of the address"),
        _A("operStatus", _STRING, "active: the router is connected to the broker; else inactive", _route_status),
        unknown("lastError", _STRING, "errors are in the node's log"),
    ),
    auto_links,
    lambda view, row: row.name,
    _may_see_route,
    ignores_unknown=True,
)  # fmt: skip
_LINK_ROUTE_NAME: Final = PREFIX + "router.config.linkRoute"
LINK_ROUTE: Final = EntityType(
    _LINK_ROUTE_NAME,
    "A queue or topic on one broker, in one direction. Operators see those that they may view.",
    (
        *head(_LINK_ROUTE_NAME, lambda view, row: row.name),
        unknown("prefix", _STRING, "`pattern` has the entry"),
        _A("pattern", _STRING, "the declared address or pattern", lambda view, row: row.pattern),
        _A("direction", _STRING, "in: from clients; out: to clients", lambda view, row: row.direction),
        _A("dir", _STRING, "as `direction`", lambda view, row: row.direction),
        fixed("distribution", _STRING, "linkBalanced", "linkBalanced, always"),
        _A("containerId", _STRING, "the broker", lambda view, row: row.broker),
        unknown("connection", _STRING, "`containerId` has the broker"),
        unknown("addExternalPrefix", _STRING),
        unknown("delExternalPrefix", _STRING),
        _A("operStatus", _STRING, "active: the router is connected to the broker; else inactive", _route_status),
    ),
    link_routes,
    lambda view, row: row.name,
    _may_see_route,
    ignores_unknown=True,
)  # fmt: skip

# Ports
_LISTENER_NAME: Final = PREFIX + "listener"
LISTENER: Final = EntityType(
    _LISTENER_NAME,
    "A port of the node, for clients or for other nodes.",
    (
        *head(_LISTENER_NAME, lambda view, row: f"listener/{row.name}", lambda view, row: row.name),
        _A("host", _STRING, "address on which the node listens", lambda view, row: row.host),
        _A("port", _STRING, "port on which the node listens", lambda view, row: row.port),
        _A("role", _STRING, "normal: for clients; inter-router: for nodes and operators",
           lambda view, row: "inter-router" if row.listener is None else "normal"),
        fixed("cost", _LONG, 1, "1: connectors have costs"),
        _A("requireSsl", _BOOLEAN, "whether clients need TLS; between nodes, whether the topology has node_tls",
           lambda view, row: view.topology.node_tls if row.listener is None else row.is_encrypted),
        _A("requireEncryption", _BOOLEAN, "as `requireSsl`",
           lambda view, row: view.topology.node_tls if row.listener is None else row.is_encrypted),
        _A("authenticatePeer", _BOOLEAN, "whether clients have to log in; nodes have certificates with node_tls",
           lambda view, row: view.topology.node_tls if row.listener is None else row.asks_for_login),
        unknown("saslMechanisms", _STRING, "a listener offers what its users can log in by"),
        _A("maxFrameSize", _LONG, "largest frame of a client",
           lambda view, row: None if row.listener is None else row.listener.max_frame_bytes),
        _A("idleTimeoutSeconds", _LONG, "time after which a silent client counts as dead",
           lambda view, row: None if row.listener is None else row.listener.idle_timeout_s),
        _A("linkCapacity", _LONG, "most credit of a client's link",
           lambda view, row: None if row.listener is None else row.listener.link_capacity),
        fixed("operStatus", _STRING, "up", "up, always: a node that cannot listen does not start"),
    ),
    listeners,
    lambda view, row: f"listener/{row.name}",
)  # fmt: skip
_CONNECTOR_NAME: Final = PREFIX + "connector"


def _connector_status(view: ManagedNode, row: ConnectorRow) -> str:
    return "SUCCESS" if row.is_up else "CONNECTING"


CONNECTOR: Final = EntityType(
    _CONNECTOR_NAME,
    "A connection that the router dials: to another router, or to a broker.",
    (
        *head(_CONNECTOR_NAME, lambda view, row: f"connector/{row.to}", lambda view, row: row.to),
        _A("host", _STRING, "host that the router dials", lambda view, row: row.host),
        _A("port", _STRING, "port that the router dials", lambda view, row: row.port),
        _A("role", _STRING, "inter-router; edge: of an edge router; route-container: to a broker",
           lambda view, row: row.role),
        _A("cost", _LONG, "cost of the connection, which UPDATE changes; null for a broker",
           lambda view, row: row.cost),
        _A("connectionStatus", _STRING, "SUCCESS: the connection is open; else CONNECTING", _connector_status),
        unknown("connectionMsg", _STRING, "errors are in the node's log"),
        unknown("sslProfile", _STRING, "nodes have certificates of the mesh"),
        fixed("verifyHostname", _BOOLEAN, True, "true: the peer's certificate has to name the node"),
    ),
    connectors,
    lambda view, row: f"connector/{row.to}",
    None,
    ("cost",),
)  # fmt: skip


# Logs, and what amqpmesh has not
def _level(view: ManagedNode, module: tuple[str, str]) -> str:
    return f"{module[1]}+"


_LOG_NAME: Final = PREFIX + "log"
LOG: Final = EntityType(
    _LOG_NAME,
    "A module of the node whose log has a level of its own, and DEFAULT for all other modules.",
    (
        *head(_LOG_NAME, lambda view, module: f"log/{module[0] or 'DEFAULT'}"),
        _A("module", _STRING, "module of the node; DEFAULT for all that have no level of their own",
           lambda view, module: module[0] or "DEFAULT"),
        _A("enable", _STRING, "least level of events that are logged, and a plus sign", _level),
        fixed("includeTimestamp", _BOOLEAN, True, "true, always"),
        fixed("includeSource", _BOOLEAN, False, "false: an event has a name"),
        _A("outputFile", _STRING, "file of the log", lambda view, module: f"log/{view.name}.jsonl"),
    ),
    lambda view: list(view.log_levels.items()),
    lambda view, module: f"log/{module[0] or 'DEFAULT'}",
    None,
    ("enable",),
)  # fmt: skip


def _none(view: ManagedNode) -> list[Any]:
    return []


def _nothing(view: ManagedNode, state: Any) -> str:
    return ""


_LOG_STATS_NAME: Final = PREFIX + "logStats"
LOG_STATS: Final = EntityType(
    _LOG_STATS_NAME,
    "Counts of log lines: none, as nodes do not count them.",
    (
        *head(_LOG_STATS_NAME, _nothing),
        *(unknown(f"{level}Count", _ULONG) for level in
          ("trace", "debug", "info", "notice", "warning", "error", "critical")),
    ),
    _none,
    _nothing,
)  # fmt: skip
_ALLOCATOR_NAME: Final = PREFIX + "allocator"
ALLOCATOR: Final = EntityType(
    _ALLOCATOR_NAME,
    "A pool of memory: none, as nodes have no pools.",
    (
        *head(_ALLOCATOR_NAME, _nothing),
        unknown("typeName", _STRING),
        *(unknown(name, _ULONG) for name in
          ("typeSize", "transferBatchSize", "localFreeListMax", "globalFreeListMax", "totalAllocFromHeap",
           "totalFreeToHeap", "heldByThreads", "batchesRebalancedToThreads", "batchesRebalancedToGlobal")),
    ),
    _none,
    _nothing,
)  # fmt: skip
_POLICY_NAME: Final = PREFIX + "policy"
POLICY: Final = EntityType(
    _POLICY_NAME,
    "The limits of the node. Users and their rights are in the topology.",
    (
        *head(_POLICY_NAME, lambda view, state: "policy", lambda view, state: "policy"),
        _A("maxConnections", _LONG, "most connections at all listeners for clients together",
           lambda view, state: sum(row.listener.max_connections for row in listeners(view) if row.listener)),
        _A("maxMessageSize", _LONG, "largest message at the first listener; 0 for no limit",
           lambda view, state: next((row.listener.max_message_bytes for row in listeners(view)
                                     if row.listener is not None), 0)),
        fixed("enableVhostPolicy", _BOOLEAN, False, "false: users have their rights in the topology"),
        fixed("enableVhostNamePatterns", _BOOLEAN, False, "false, always"),
        fixed("policyDir", _STRING, "", "empty, always"),
        fixed("defaultVhost", _STRING, "", "empty, always"),
        unknown("connectionsProcessed", _ULONG, "not counted"),
        unknown("connectionsDenied", _ULONG, "not counted: refused connections are in the node's log"),
        _A("connectionsCurrent", _ULONG, "connections of clients", lambda view, state: view.node.clients),
        unknown("linksDenied", _ULONG, "not counted: refused links are in the node's log"),
        unknown("maxMessageSizeDenied", _ULONG, "not counted"),
        unknown("totalDenials", _ULONG, "not counted"),
    ),
    lambda view: (view,),
    lambda view, state: "policy",
)  # fmt: skip
_VHOST_NAME: Final = PREFIX + "vhost"
VHOST: Final = EntityType(
    _VHOST_NAME,
    "A virtual host: none.",
    (
        *head(_VHOST_NAME, _nothing),
        unknown("hostname", _STRING),
        *(unknown(name, _LONG) for name in
          ("maxConnections", "maxMessageSize", "maxConnectionsPerUser", "maxConnectionsPerHost")),
        unknown("allowUnknownUser", _BOOLEAN),
        unknown("groups", _MAP),
    ),
    _none,
    _nothing,
)  # fmt: skip
_VHOST_STATS_NAME: Final = PREFIX + "vhostStats"
VHOST_STATS: Final = EntityType(
    _VHOST_STATS_NAME,
    "Counts of a virtual host: none.",
    (
        *head(_VHOST_STATS_NAME, _nothing),
        unknown("hostname", _STRING),
        *(unknown(name, _ULONG) for name in
          ("connectionsApproved", "connectionsDenied", "connectionsCurrent", "sessionDenied", "senderDenied",
           "receiverDenied", "maxMessageSizeDenied")),
        unknown("perUserState", _MAP),
    ),
    _none,
    _nothing,
)  # fmt: skip
