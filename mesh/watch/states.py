"""The present state of each entity on the observer's host. Sans-IO: `mesh.watch.host_model` changes it.

Fields that views show are attributes here, by the paths in `_PATHS`. Sums of addresses, patterns and users are kept as
deliveries are added, not computed from their links: so they stay when a link ends.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from mesh.watch.counts import COUNT_FIELDS, DeliveryCounts, LatencyCounts
from mesh.watch.declared_limits import NO_LIMITS, QueueLimits
from mesh.watch.starved_times import CREDIT_CAUSES, NEVER_STARVED, StarvedTimes
from recording.entities import ADDRESS, CONNECTION, ENTITIES, LINK, NEIGHBOR, NODE, PATH, PATTERN, QUEUE, USER, Entity

if TYPE_CHECKING:
    from collections.abc import Callable

SILENT_S: Final = 3.0
"""A node that has not written its clock for so long is silent: nodes write the clock each second."""
RUNNING: Final = "running"
SILENT: Final = "silent"
ENDED: Final = "ended"
LOST: Final = "lost"
BROKER: Final = "broker"
"""The role of a node whose connections are of routers: a router connects to its broker for each client, without a
certificate under the name of the client."""


class ObservedNode:
    """A node, over all its runs since the observer began."""

    def __init__(self, name: str, host: str | None = None) -> None:
        self.name = self.id = name
        self.host = host
        self.role = self.version = self.topology = ""
        self.state = RUNNING
        self.cause: str | None = None
        self.unknown_because: str | None = None
        """None, as the observer of the node's own host can tell."""
        self.started_at = self.counted_since = 0.0
        self.age_s = self.beat_at = 0.0
        """Time since the node last wrote its clock, and when that was, in seconds of UTC."""
        self.cpu_s: float | None = None
        self.resident_bytes: int | None = None
        self.records_dropped = self.records_missed = 0
        self.clients = self.waiting_producers = 0
        self.max_clients: int | None = None
        self.connections: dict[int, ObservedConnection] = {}
        self.links: dict[int, ObservedLink] = {}
        """Attached links by number, and links that ended a few seconds ago, whose sums may still come."""
        self.queues: dict[int, ObservedQueue] = {}
        self.queue_totals: dict[ObservedPattern, PatternQueueTotals] = {}
        """By pattern, of all queues that a broker had since the observer began."""
        self.neighbors: dict[str, ObservedNeighbor] = {}
        self.paths: dict[str, ObservedPath] = {}
        self.addresses: dict[str, NodeAddress] = {}
        """Of a router: addresses that links of this node have."""
        self.routed = RouteCounts()
        """Deliveries of all addresses."""
        self.missed = 0
        """Copies and pre-settled deliveries that were dropped, over all links."""
        self.attached = 0
        self.incoming, self.outgoing, self.ingress, self.egress = (
            DeliveryCounts(),
            DeliveryCounts(),
            DeliveryCounts(),
            DeliveryCounts(),
        )
        self.latencies = LatencyCounts()
        """Of deliveries from clients, from arrival to settlement."""

    @property
    def connection_count(self) -> int:
        return len(self.connections)

    @property
    def is_broker(self) -> bool:
        return self.role == BROKER

    @property
    def is_over(self) -> bool:
        """Whether the node's last run is over."""
        return self.state in (ENDED, LOST)


class ObservedConnection:
    __slots__ = (
        "container", "direction", "id", "incoming", "links", "mechanism", "node", "opened_at", "outgoing",
        "remote_address", "role", "tls_cipher", "tls_version", "user",
    )  # fmt: skip

    def __init__(self, node: ObservedNode, number: int, row: dict[str, Any], opened_at: float | None) -> None:
        self.node, self.id = node, f"{node.name}/{number}"
        self.role: str = row.get("role", "")
        self.container: str | None = row.get("container")
        self.remote_address: str | None = row.get("remote_address")
        self.direction: str | None = row.get("direction")
        self.mechanism: str | None = row.get("mechanism")
        self.tls_version: str | None = row.get("tls_version")
        self.tls_cipher: str | None = row.get("tls_cipher")
        self.user: ObservedUser | None = None
        """The user, for connections of clients only."""
        self.opened_at = opened_at
        self.links: dict[int, ObservedLink] = {}
        self.incoming, self.outgoing = DeliveryCounts(), DeliveryCounts()

    @property
    def link_count(self) -> int:
        return len(self.links)

    @property
    def user_name(self) -> str | None:
        return None if self.user is None else self.user.name


class ObservedLink:
    __slots__ = (
        "address", "address_text", "at_node", "attached_at", "connection", "counts", "credit", "direction", "egress",
        "id", "ingress", "is_ended", "missed", "name", "node", "number", "path", "receiver_settle_mode", "role",
        "sender_settle_mode", "starved", "treatment", "unsettled", "waiting_since", "waits_for",
    )  # fmt: skip

    def __init__(
        self, node: ObservedNode, connection: ObservedConnection | None, row: dict[str, Any], attached_at: float | None
    ) -> None:
        self.number: int = row["link"]
        self.node, self.connection, self.id = node, connection, f"{node.name}/{self.number}"
        self.role: str = row.get("role", "")
        self.direction: str = row.get("direction", "")
        self.treatment: str | None = row.get("treatment")
        self.name: str | None = row.get("name")
        self.sender_settle_mode: str | None = row.get("sender_settle_mode")
        self.receiver_settle_mode: str | None = row.get("receiver_settle_mode")
        self.ingress: str | None = row.get("ingress")
        self.egress: str | None = row.get("egress")
        self.path: str | None = row.get("path")
        self.address_text: str | None = row.get("address")
        self.address: ObservedAddress | None = None
        """None for a producer without a fixed address, and for an address of the mesh itself."""
        self.at_node: NodeAddress | None = None
        """What the link's router has of the address; None at brokers, too."""
        self.attached_at = attached_at
        self.credit: int | None = None
        self.waits_for: str | None = None
        self.waiting_since: float | None = None
        """Begin of the present lack of credit, in seconds of UTC; None if the observer did not see the begin."""
        self.starved = NEVER_STARVED
        self.missed = 0
        self.unsettled: int | None = None
        self.is_ended = False
        self.counts = DeliveryCounts()

    @property
    def is_producer(self) -> bool:
        """Whether a client sends over this link, which is at the router that the client is connected to."""
        return self.role == "producer" and not self.node.is_broker

    @property
    def is_consumer(self) -> bool:
        """Whether a client receives over this link, which is at the router that the client is connected to."""
        return self.role == "consumer" and not self.node.is_broker

    @property
    def connection_id(self) -> str | None:
        return None if self.connection is None else self.connection.id

    @property
    def pattern_text(self) -> str | None:
        return None if self.address is None else self.address.pattern_text

    @property
    def user_name(self) -> str | None:
        return None if self.connection is None else self.connection.user_name

    @property
    def container(self) -> str | None:
        return None if self.connection is None else self.connection.container

    @property
    def pattern_state(self) -> ObservedPattern | None:
        return None if self.address is None else self.address.pattern

    def add_starved(self, cause: str | None, starved_us: int) -> None:
        if self.starved is NEVER_STARVED:
            self.starved = StarvedTimes()
        self.starved.add(cause, starved_us)

    @property
    def starved_s(self) -> float:
        return self.starved.total_us / 1e6


class ObservedAddress:
    __slots__ = (
        "_waiting_by_cause", "address", "consumers", "depth", "egress", "ingress", "pattern", "producers",
        "queues_count", "treatment", "users_count", "waiting_producers", "waiting_since",
    )  # fmt: skip

    def __init__(self, address: str, pattern: ObservedPattern | None) -> None:
        self.address, self.pattern = address, pattern
        self.treatment: str | None = None
        self.producers = self.consumers = self.waiting_producers = 0
        self._waiting_by_cause: dict[str, int] | None = None
        """Number of producers that wait, by cause; None while no producer of the address has ever waited."""
        self.waiting_since: float | None = None
        """Since when producers have waited without a break, in seconds of UTC; None if unknown, or no producer waits.
        """
        self.users_count = self.queues_count = 0
        """Links and queues of this address, and queues among them that count for `depth`; the address is forgotten with
        the last link or queue."""
        self.depth: int | None = None
        """Messages in all queues of the address, not counting subscriptions; None without a queue."""
        self.ingress, self.egress = DeliveryCounts(), DeliveryCounts()

    @property
    def pattern_text(self) -> str | None:
        return None if self.pattern is None else self.pattern.pattern

    @property
    def waits_for(self) -> str | None:
        """The causes for which producers wait, with commas between; None while no producer waits."""
        by_cause = self._waiting_by_cause
        return ", ".join(sorted(cause for cause, count in by_cause.items() if count)) or None if by_cause else None

    def change_waiting(self, before: str | None, after: str | None, since: float | None) -> None:
        """Note that a producer that waited for ``before`` now waits for ``after``; None is for not waiting.

        ``since``: begin of the producer's wait, in seconds of UTC; None if unknown.
        """
        if self._waiting_by_cause is None:
            self._waiting_by_cause = {}
        if not self.waiting_producers:
            self.waiting_since = since
        for cause, change in ((before, -1), (after, 1)):
            if cause is not None:
                self._waiting_by_cause[cause] = self._waiting_by_cause.get(cause, 0) + change
                self.waiting_producers += change
        if not self.waiting_producers:
            self.waiting_since = None


class RouteCounts:
    """Deliveries through a router by where they came from and where they went to; they never fall."""

    __slots__ = ("egress", "from_brokers", "ingress", "to_brokers", "transit")

    def __init__(self) -> None:
        self.ingress = self.egress = 0
        """From clients, and to clients."""
        self.transit = 0
        """From another router to another router; each copy of a multicast counts."""
        self.from_brokers = self.to_brokers = 0


class NodeAddress(RouteCounts):
    """An address at one router, with the links for it there."""

    __slots__ = ("address", "brokers", "consumers", "producers", "users_count")

    def __init__(self, address: ObservedAddress) -> None:
        super().__init__()
        self.address = address
        self.producers = self.consumers = 0
        """Links of clients."""
        self.brokers = 0
        """Links to brokers, and from brokers."""
        self.users_count = 0
        """Links; the state is forgotten with the last link."""


class ObservedPattern:
    """An entry of the topology's addresses."""

    def __init__(self, pattern: str, type_: str, queue_limits: QueueLimits = NO_LIMITS) -> None:
        self.pattern, self.type, self.queue_limits = pattern, type_, queue_limits
        self.addresses = self.producers = self.consumers = self.waiting_producers = 0
        self.starved = StarvedTimes()
        self.ingress, self.egress, self.latencies = DeliveryCounts(), DeliveryCounts(), LatencyCounts()

    @property
    def starved_s(self) -> float:
        return self.starved.total_us / 1e6


class ObservedUser:
    def __init__(self, name: str, max_connections: int | None = None) -> None:
        self.name, self.max_connections = name, max_connections
        self.connections = self.links = 0
        self.ingress, self.egress = DeliveryCounts(), DeliveryCounts()


class ObservedQueue:
    __slots__ = (
        "acquired", "address", "address_text", "came_at", "dead_lettered", "depth", "depth_bytes", "dequeued",
        "enqueued", "expired", "id", "node", "removed", "subscriber", "utc_s",
    )  # fmt: skip

    def __init__(self, node: ObservedNode, row: dict[str, Any], utc_s: Callable[[], float]) -> None:
        self.node, self.id = node, f"{node.name}/{row['queue']}"
        self.address_text: str | None = row.get("address")
        self.subscriber: str | None = row.get("name")
        self.address: ObservedAddress | None = None
        self.depth = self.depth_bytes = self.acquired = 0
        self.came_at: float | None = None
        """When the oldest message came to the broker, in seconds of UTC."""
        self.enqueued = self.dequeued = self.expired = self.dead_lettered = self.removed = 0
        self.utc_s = utc_s

    @property
    def oldest_s(self) -> float | None:
        return None if self.came_at is None else max(0.0, self.utc_s() - self.came_at)

    @property
    def pattern_text(self) -> str | None:
        return None if self.address is None else self.address.pattern_text

    @property
    def limits(self) -> QueueLimits:
        pattern = None if self.address is None else self.address.pattern
        return NO_LIMITS if pattern is None else pattern.queue_limits


class PatternQueueTotals:
    """Messages of all queues of one pattern at one broker; they remain when a queue is deleted, so they never fall."""

    __slots__ = ("dead_lettered", "dequeued", "enqueued", "expired", "removed")

    def __init__(self) -> None:
        self.enqueued = self.dequeued = self.expired = self.dead_lettered = self.removed = 0


class ObservedNeighbor:
    __slots__ = ("cost", "id", "neighbor", "node", "since")

    def __init__(self, node: ObservedNode, neighbor: str, cost: int | None, since: float | None) -> None:
        self.node, self.neighbor, self.id = node, neighbor, f"{node.name}/{neighbor}"
        self.cost, self.since = cost, since


class ObservedPath:
    __slots__ = ("cost", "egress", "id", "node", "path", "since")

    def __init__(self, node: ObservedNode, row: dict[str, Any], since: float | None) -> None:
        self.node, self.egress, self.id = node, row["egress"], f"{node.name}/{row['egress']}"
        self.path: str | None = row.get("path")
        self.cost: int | None = row.get("cost")
        self.since = since


def _counted(prefix: str, attribute: str) -> dict[str, str]:
    return {prefix + name: f"{attribute}.{name}" for name in COUNT_FIELDS}


_STARVED: Final = {f"starved_{cause}_s": f"starved.{cause}_s" for cause in CREDIT_CAUSES}
_CLIENTS: Final = {**_counted("in_", "ingress"), **_counted("out_", "egress")}
_PATHS: Final[dict[Entity, dict[str, str]]] = {
    NODE: {
        "connections": "connection_count",
        "links": "attached",
        **_counted("in_", "incoming"),
        **_counted("out_", "outgoing"),
        **_counted("ingress_", "ingress"),
        **_counted("egress_", "egress"),
    },
    CONNECTION: {
        "node": "node.name",
        "user": "user_name",
        "links": "link_count",
        **_counted("in_", "incoming"),
        **_counted("out_", "outgoing"),
    },
    LINK: {
        "node": "node.name",
        "connection": "connection_id",
        "address": "address_text",
        "pattern": "pattern_text",
        "user": "user_name",
        **_STARVED,
        **_counted("", "counts"),
    },
    ADDRESS: {"id": "address", "pattern": "pattern_text", **_CLIENTS},
    PATTERN: {"id": "pattern", **_STARVED, **_CLIENTS},
    USER: {"id": "name", "user": "name", **_CLIENTS},
    QUEUE: {
        "node": "node.name",
        "address": "address_text",
        "pattern": "pattern_text",
        "max_messages": "limits.max_messages",
        "max_bytes": "limits.max_bytes",
    },
    NEIGHBOR: {"node": "node.name"},
    PATH: {"node": "node.name"},
}
GETTERS: Final[dict[Entity, dict[str, Callable[[Any], Any]]]] = {
    entity: {name: attrgetter(_PATHS[entity].get(name, name)) for name in entity.names} for entity in ENTITIES
}
"""By entity and name of a field, a function from the state of the entity to the value of the field."""


@cache
def getters_of(entity: Entity) -> dict[str, Callable[[Any], Any]]:
    """Return the getters of ``entity``; one that is declared elsewhere has attributes with the names of its fields."""
    return GETTERS.get(entity) or {name: attrgetter(name) for name in entity.names}


def row_of(entity: Entity, state: Any, names: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the values of the fields ``names`` of ``state``, or of all fields of ``entity``."""
    getters = getters_of(entity)
    return {name: getters[name](state) for name in (names or entity.names)}
