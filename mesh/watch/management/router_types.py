"""Entity types of management for a node itself, the routers that it knows, and the queues of a broker.

Counts of deliveries have the meaning of the model (docs/reference/entities.md), and are those of one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from addressing.address import AREA_PREFIX
from mesh.watch.management.config_rows import auto_links, link_routes
from mesh.watch.management.entity_types import (
    PREFIX,
    EntityType,
    FieldAttributes,
    ManagedNode,
    ValueType,
    Viewer,
    fixed,
    head,
    number_of,
    unknown,
)
from mesh.watch.management.entity_types import Attribute as _A
from recording.entities import NODE, QUEUE

if TYPE_CHECKING:
    from mesh.watch.states import ObservedPath, ObservedQueue

_STRING, _INT, _UINT = ValueType.STRING, ValueType.INT, ValueType.UINT
_ULONG, _STRINGS = ValueType.ULONG, ValueType.STRINGS


# Router
_node = FieldAttributes(NODE, lambda view: view.node)


def _stuck(view: ManagedNode, state: Any) -> int:
    return sum(link.unsettled or 0 for link in view.node.links.values() if not link.is_ended)


def _mode(view: ManagedNode, state: Any) -> str:
    return {"router": "interior", "edge": "edge"}.get(view.node.role, "endpoint")


def _to_fallback(view: ManagedNode, state: Any) -> int | None:
    return None if any(entry.fallback is not None for entry in view.topology.addresses.values()) else 0


_ROUTER_NAME: Final = PREFIX + "router"
ROUTER: Final = EntityType(
    _ROUTER_NAME,
    "The node itself: a router, or an embedded broker.",
    (
        *head(_ROUTER_NAME, lambda view, state: "1", lambda view, state: view.name),
        _node("id", _STRING, "name"),
        _A("mode", _STRING, "interior or edge; endpoint for a broker", _mode, "role"),
        fixed("area", _STRING, "0", "0: a mesh is one area"),
        _node("version", _STRING, "version"),
        unknown("metadata", _STRING),
        fixed("workerThreads", _INT, 1, "1: a node has one event loop"),
        _A("uptimeSeconds", _UINT, "time since the start of the node",
           lambda view, state: view.age_of(view.node.started_at), "started_at"),
        _node("memoryUsage", _ULONG, "resident_bytes"),
        _A("linkRouteCount", _ULONG, "number of router.config.linkRoute",
           lambda view, state: len(link_routes(view))),
        _A("autoLinkCount", _ULONG, "number of router.config.autoLink",
           lambda view, state: len(auto_links(view))),
        _node("linkCount", _ULONG, "links"),
        _A("nodeCount", _ULONG, "routers that the router has a path to, and itself",
           lambda view, state: len(view.node.paths) + 1),
        _A("addrCount", _ULONG, "number of router.address", lambda view, state: len(view.node.addresses)),
        _node("connectionCount", _ULONG, "connections"),
        _node("presettledDeliveries", _ULONG, "in_settled"),
        _A("droppedPresettledDeliveries", _ULONG, "copies and pre-settled deliveries that were dropped",
           lambda view, state: view.node.missed),
        _node("acceptedDeliveries", _ULONG, "in_accepted"),
        _node("rejectedDeliveries", _ULONG, "in_rejected"),
        _node("releasedDeliveries", _ULONG, "in_released"),
        _node("modifiedDeliveries", _ULONG, "in_modified"),
        _node("deliveriesDelayed1Sec", _ULONG, "in_delayed_1s"),
        _node("deliveriesDelayed10Sec", _ULONG, "in_delayed_10s"),
        _A("deliveriesStuck", _ULONG, "deliveries at present that wait for an outcome on links that stand still for "
           "10 s", _stuck),
        _A("deliveriesRedirectedToFallback", _ULONG, "0 if no address has a fallback queue; else null, as not all such "
           "deliveries are counted", _to_fallback),
        _node("linksBlocked", _ULONG, "waiting_producers"),
        _node("deliveriesIngress", _ULONG, "ingress_deliveries"),
        _node("deliveriesEgress", _ULONG, "egress_deliveries"),
        _A("deliveriesTransit", _ULONG, "deliveries that came from a router and left to a router; copies count each",
           lambda view, state: view.node.routed.transit),
        _A("deliveriesIngressRouteContainer", _ULONG, "deliveries that came from brokers",
           lambda view, state: view.node.routed.from_brokers),
        _A("deliveriesEgressRouteContainer", _ULONG, "deliveries that left to brokers",
           lambda view, state: view.node.routed.to_brokers),
    ),
    lambda view: (view,),
    lambda view, state: "1",
    ignores_unknown=True,
)  # fmt: skip


# Routers of the mesh
_NODE_NAME: Final = PREFIX + "router.node"
_Known = tuple[str, "ObservedPath | None"]
"""Name of a router, and the path to it; None for the router itself."""


def _next_hop(view: ManagedNode, known: _Known) -> str | None:
    name, path = known
    if path is None:
        return "(self)"
    hops = (path.path or "").split(">")
    return None if name in view.node.neighbors or len(hops) < 2 else hops[1]


def _router_link(view: ManagedNode, known: _Known) -> int | None:
    found = (each for each in view.node.connections.values() if each.container == known[0] and each.role == "router")
    return next((int(number_of(each.id)) for each in found), None)


def _neighbors(view: ManagedNode, known: _Known) -> list[str] | None:
    node = view.host.nodes.get(known[0])
    return None if node is None else sorted(node.neighbors)


def _node_rows(view: ManagedNode) -> list[_Known]:
    if view.node.role != "router":
        return []
    return [(view.name, None), *sorted(view.node.paths.items())]


NODE_TYPE: Final = EntityType(
    _NODE_NAME,
    "A router that this router has a path to, and itself. Empty at edge routers and brokers.",
    (
        *head(_NODE_NAME, lambda view, known: known[0]),
        _A("id", _STRING, "name of the router", lambda view, known: known[0]),
        fixed("protocolVersion", _UINT, 1, "1, always"),
        _A("instance", _UINT, "start of the router, in seconds since 1970; null for a router of another host",
           lambda view, known: getattr(view.host.nodes.get(known[0]), "started_at", None), "started_at"),
        _A("linkState", _STRINGS, "neighbors of the router; null for a router of another host", _neighbors),
        _A("nextHop", _STRING, "next router on the path; null for a neighbor, and (self) for the router itself",
           _next_hop, "path"),
        unknown("validOrigins", _STRINGS, "multicasts of amqpmesh go along branches without valid origins"),
        _A("address", _STRING, "address of the router", lambda view, known: f"amqp:/{AREA_PREFIX}{known[0]}"),
        _A("routerLink", _ULONG, "identity of the connection to a neighbor; else null", _router_link),
        _A("cost", _ULONG, "cost of the path; null for the router itself",
           lambda view, known: None if known[1] is None else known[1].cost, "cost"),
        _A("lastTopoChange", _ULONG, "when this path was chosen, in seconds since 1970; null if the observer started "
           "later", lambda view, known: None if known[1] is None else known[1].since, "since"),
    ),
    _node_rows,
    lambda view, known: known[0],
)  # fmt: skip

# Queues of embedded brokers
_queue = FieldAttributes(QUEUE)
_QUEUE_NAME: Final = "amqpmesh.queue"


def _sees_queue(viewer: Viewer, queue: ObservedQueue) -> bool:
    return queue.address_text is not None and viewer.may_view(queue.address_text)


QUEUE_TYPE: Final = EntityType(
    _QUEUE_NAME,
    "A queue, or the subscription of a topic, at an embedded broker: a type of amqpmesh. Operators see the queues of "
    "the addresses that they may view.",
    (
        *head(_QUEUE_NAME, lambda view, each: number_of(each.id), lambda view, each: each.address_text),
        _queue("address", _STRING, "address"),
        _queue("subscriber", _STRING, "subscriber"),
        _queue("depth", _ULONG, "depth"),
        _queue("depthBytes", _ULONG, "depth_bytes"),
        _queue("acquired", _ULONG, "acquired"),
        _queue("oldestSeconds", _UINT, "oldest_s"),
        _queue("enqueued", _ULONG, "enqueued"),
        _queue("dequeued", _ULONG, "dequeued"),
        _queue("expired", _ULONG, "expired"),
        _queue("deadLettered", _ULONG, "dead_lettered"),
        _queue("removed", _ULONG, "removed"),
    ),
    lambda view: view.node.queues.values(),
    lambda view, each: number_of(each.id),
    _sees_queue,
)  # fmt: skip
