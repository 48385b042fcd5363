"""The entities that operators see of a mesh, such as links and queues: for each field its type, unit, meaning, source.

This is the one model of all views: REST, metrics, the terminal and pages name only fields that are declared here. The
observer (`mesh/watch/`) makes the entities of the nodes' records, whose columns `recording.columns` defines.

Counters count from when the observer first saw the node; `counted_since` of a node is that time. They never fall: when
a link ends, its counts remain in the sums of its address, declared pattern, user and node.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MODEL_VERSION: Final = 1
"""Version of the entities, raised when a field is renamed, removed, or changes its meaning; not for a new field."""


class EntityFieldType(StrEnum):
    """Type of a field's value; any value may be None, for unknown or not applicable."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    MAP = "map"
    """Names and values."""


class FieldSource(StrEnum):
    """Where the observer has the value of a field from."""

    RING = "ring"
    """The header of the node's ring."""
    RECORD = "record"
    """A state record of the node, such as the attach of a link."""
    SUM = "sum"
    """A sum over delivery and traffic records, or message records."""
    COUNT = "count"
    """The number of other entities at this moment."""
    OBSERVER = "observer"
    """The observer's own clock, or its look at the ring."""
    TOPOLOGY = "topology"
    """The topology file."""
    LOG = "log"
    """A line in the log of a node."""


class FieldUnit(StrEnum):
    """Unit of a number."""

    NONE = ""
    DELIVERIES = "deliveries"
    MESSAGES = "messages"
    BYTES = "bytes"
    SECONDS = "seconds"
    UTC_SECONDS = "seconds since 1970, UTC"
    PER_SECOND = "deliveries per second"
    LINKS = "links"
    CONNECTIONS = "connections"
    RECORDS = "records"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class EntityField:
    """A field of an entity. ``is_counter``: the number only grows while the observer runs."""

    name: str
    type: EntityFieldType
    meaning: str
    source: FieldSource
    unit: FieldUnit = FieldUnit.NONE
    is_counter: bool = False


@dataclass(frozen=True, slots=True)
class Entity:
    """A kind of thing that operators see: ``name`` is the word in singular, ``plural`` names it in URLs.

    Fields beginning with `id` identify an entity within the mesh.
    """

    name: str
    plural: str
    meaning: str
    fields: tuple[EntityField, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def field(self, name: str) -> EntityField | None:
        return next((field for field in self.fields if field.name == name), None)


_Unit = FieldUnit
_From = FieldSource


def _text(name: str, meaning: str, source: FieldSource = _From.RECORD) -> EntityField:
    return EntityField(name, EntityFieldType.TEXT, meaning, source)


def _number(name: str, unit: FieldUnit, meaning: str, source: FieldSource) -> EntityField:
    return EntityField(name, EntityFieldType.NUMBER, meaning, source, unit)


def _counter(name: str, unit: FieldUnit, meaning: str, source: FieldSource = _From.SUM) -> EntityField:
    return EntityField(name, EntityFieldType.NUMBER, meaning, source, unit, is_counter=True)


_ID: Final = _text("id", "name by which the REST interface finds the entity", _From.OBSERVER)
_NODE: Final = _text("node", "node that recorded the entity", _From.RING)


def _counts(prefix: str, subject: str) -> tuple[EntityField, ...]:
    """Return the fields of a `mesh.watch.counts.DeliveryCounts`, for deliveries that are described by ``subject``."""

    def each(name: str, meaning: str) -> EntityField:
        return _counter(f"{prefix}{name}", _Unit.DELIVERIES, meaning)

    return (
        each("deliveries", f"{subject}, whatever their outcome"),
        each("accepted", f"{subject} with outcome accepted"),
        each("rejected", f"{subject} with outcome rejected"),
        each("released", f"{subject} with outcome released"),
        each("modified", f"{subject} with outcome modified"),
        each("settled", f"{subject} that were sent settled, or were settled without a state"),
        each("aborted", f"{subject} that were aborted, or whose sender was lost"),
        each("delayed_1s", f"{subject} that took 1 s or longer from arrival to settlement"),
        each("delayed_10s", f"{subject} that took 10 s or longer from arrival to settlement"),
        _counter(f"{prefix}bytes", _Unit.BYTES, f"size of {subject}"),
        _number(f"{prefix}rate", _Unit.PER_SECOND, f"{subject}, per second, over the last seconds", _From.SUM),
        _number(f"{prefix}last_at", _Unit.UTC_SECONDS, f"end of the last of {subject}", _From.SUM),
    )


_CREDIT_CAUSES: Final = {
    "no_taker": "no consumer or broker takes messages of the address",
    "takers": "the takers give no credit",
    "full_queue": "a broker's queue was full",
    "disk": "a broker's disk was full",
    "memory": "a broker was short of memory",
}


def _starved(subject: str) -> tuple[EntityField, ...]:
    """Return the fields of a `mesh.watch.starved_times.StarvedTimes`: the whole time, and the time of each cause."""
    return (
        _counter("starved_s", _Unit.SECONDS, subject),
        *(
            _counter(f"starved_{cause}_s", _Unit.SECONDS, f"{subject}, since {meaning}")
            for cause, meaning in _CREDIT_CAUSES.items()
        ),
    )


NODE: Final = Entity(
    "node",
    "nodes",
    "A router or broker.",
    (
        _ID,
        _text("name", "name of the node", _From.RING),
        _text("host", "host whose observer tells of the node: name of the host, and letters for the work directory",
              _From.OBSERVER),
        _text("role", "role of the node: router, edge, broker", _From.RING),
        _text("version", "version of amqpmesh that the node runs", _From.RING),
        _text("topology", "SHA-256 of the topology file that the node runs", _From.RING),
        _text("state", "running; ended: in order; lost: the process failed, or is gone without a record of its end; "
              "silent: the node has not written its clock for 3 s; unknown: no observer can tell now; other fields "
              "are the last that one told", _From.OBSERVER),
        _text("unknown_because", "why no observer can tell of the node now", _From.OBSERVER),
        _text("cause", "reason for the end of the node: stopped, failed"),
        _number("started_at", _Unit.UTC_SECONDS, "start of the node", _From.RING),
        _number("counted_since", _Unit.UTC_SECONDS, "time from which the counters of the node count", _From.OBSERVER),
        _number("age_s", _Unit.SECONDS, "time since the node last wrote its clock to the ring", _From.OBSERVER),
        _number("connections", _Unit.CONNECTIONS, "connections that are open", _From.COUNT),
        _number("clients", _Unit.CONNECTIONS, "connections of clients that are open", _From.COUNT),
        _number("max_clients", _Unit.CONNECTIONS, "most connections of clients, over all listeners of a router",
                _From.TOPOLOGY),
        _number("links", _Unit.LINKS, "links that are attached", _From.COUNT),
        _number("waiting_producers", _Unit.LINKS, "links of producers without credit", _From.COUNT),
        _number("cpu_s", _Unit.SECONDS, "processor time of the node's process since its start", _From.RECORD),
        _number("resident_bytes", _Unit.BYTES, "resident memory of the node's process", _From.RECORD),
        _counter("records_dropped", _Unit.RECORDS, "records that the node lost, for want of room in its ring",
                 _From.RING),
        _counter("records_missed", _Unit.RECORDS, "slots of the ring that were overwritten before the observer read "
                 "them: counters are too small by their content", _From.OBSERVER),
        *_counts("in_", "deliveries that came over any link"),
        *_counts("out_", "deliveries that left over any link"),
        *_counts("ingress_", "deliveries that came from clients"),
        *_counts("egress_", "deliveries that left to clients"),
    ),
)  # fmt: skip

CONNECTION: Final = Entity(
    "connection",
    "connections",
    "An AMQP connection of a node. A connection between two nodes is there twice.",
    (
        _ID,
        _NODE,
        _text("role", "role of the peer: client, router, edge, broker, operator"),
        _text("container", "container-id of the peer"),
        _text("user", "authenticated user"),
        _text("remote_address", "host and port of the peer"),
        _text("direction", "incoming: the node accepted the connection; outgoing: the node dialed the peer"),
        _text("mechanism", "SASL mechanism of the login; none without a SASL layer, as between nodes"),
        _text("tls_version", "version of TLS, such as TLSv1.3; none without TLS"),
        _text("tls_cipher", "cipher suite of TLS, as OpenSSL names it; none without TLS"),
        _number("opened_at", _Unit.UTC_SECONDS, "when the connection opened; unknown if the observer started later",
                _From.RECORD),
        _number("links", _Unit.LINKS, "links that are attached", _From.COUNT),
        *_counts("in_", "deliveries that came over the connection"),
        *_counts("out_", "deliveries that left over the connection"),
    ),
)  # fmt: skip

LINK: Final = Entity(
    "link",
    "links",
    "An AMQP link of a node. A link between two nodes is there twice.",
    (
        _ID,
        _NODE,
        _text("connection", "id of the connection"),
        _text("role", "role of the link: producer, consumer, circuit, broker, route; operator: of an observer, or of a "
              "command that is connected to the node port"),
        _text("direction", "direction as the node sees it: incoming or outgoing"),
        _text("address", "address of the link; none for a producer without a fixed address"),
        _text("pattern", "declared address or pattern of the topology that covers the address", _From.TOPOLOGY),
        _text("treatment", "treatment of the address: closest, balanced, multicast, queue, topic"),
        _text("name", "name of the link"),
        _text("sender_settle_mode", "unsettled, settled or mixed, by the peer's attach"),
        _text("receiver_settle_mode", "first or second, by the peer's attach"),
        _text("user", "authenticated user of the connection"),
        _text("container", "container-id of the peer"),
        _text("ingress", "of a circuit: router where messages enter the mesh"),
        _text("egress", "of a circuit: router at the other end"),
        _text("path", "of a circuit: routers from this node on, with > between them"),
        _number("attached_at", _Unit.UTC_SECONDS, "when the link was attached; unknown if the observer started later",
                _From.RECORD),
        _number("credit", _Unit.DELIVERIES, "credit as last recorded: of a link that stands still, or of a producer "
                "without credit", _From.RECORD),
        _text("waits_for", "of a producer without credit, what it waits for: no_taker, takers; at a broker full_queue, "
              "disk, memory"),
        _number("waiting_since", _Unit.UTC_SECONDS, "of a link whose sender waits for credit, when the present lack of "
                "credit began, to within a second; unknown if the observer started later", _From.RECORD),
        *_starved("time without credit"),
        _number("unsettled", _Unit.DELIVERIES, "deliveries that wait for an outcome, of an outgoing link that stands "
                "still for 10 s", _From.RECORD),
        _counter("missed", _Unit.DELIVERIES, "copies and pre-settled deliveries that were dropped"),
        *_counts("", "deliveries over the link"),
    ),
)  # fmt: skip

_TRAFFIC_OF_CLIENTS: Final = (
    *_counts("in_", "deliveries from clients"),
    *_counts("out_", "deliveries to clients"),
)

ADDRESS: Final = Entity(
    "address",
    "addresses",
    "An address that clients or nodes have links for, or had, if `metrics.detail` of the topology has the address. "
    "Numbers are sums over the nodes; a client counts at the router that it is connected to, and nowhere else.",
    (
        _ID,
        _text("address", "the address"),
        _text("pattern", "declared address or pattern of the topology that covers the address", _From.TOPOLOGY),
        _text("treatment", "closest, balanced, multicast, queue, topic"),
        _number("producers", _Unit.LINKS, "links of clients that send", _From.COUNT),
        _number("consumers", _Unit.LINKS, "links of clients that receive", _From.COUNT),
        _number("waiting_producers", _Unit.LINKS, "links of clients that send and have no credit", _From.COUNT),
        _text("waits_for", "what the producers without credit wait for, with commas between: no_taker, takers"),
        _number(
            "waiting_since",
            _Unit.UTC_SECONDS,
            "since when producers have waited for credit without a break; unknown if the observer started later",
            _From.RECORD,
        ),
        _number("depth", _Unit.MESSAGES, "messages in the queue of the address, over all brokers", _From.RECORD),
        *_TRAFFIC_OF_CLIENTS,
    ),
)

PATTERN: Final = Entity(
    "pattern",
    "patterns",
    "An entry of the topology's addresses, with the traffic of all addresses that it covers.",
    (
        _ID,
        _text("pattern", "the declared address or pattern", _From.TOPOLOGY),
        _text("type", "type of the entry: anycast, multicast, queue, topic", _From.TOPOLOGY),
        _number(
            "addresses", _Unit.NONE, "addresses in use; one that is in use on several hosts counts on each", _From.COUNT
        ),
        _number("producers", _Unit.LINKS, "links of clients that send", _From.COUNT),
        _number("consumers", _Unit.LINKS, "links of clients that receive", _From.COUNT),
        _number("waiting_producers", _Unit.LINKS, "links of clients that send and have no credit", _From.COUNT),
        *_starved("time without credit, of all producers together"),
        *_TRAFFIC_OF_CLIENTS,
    ),
)

USER: Final = Entity(
    "user",
    "users",
    "A user of clients, with the traffic of all connections of the user.",
    (
        _ID,
        _text("user", "name of the user; anonymous for clients without one"),
        _number("connections", _Unit.CONNECTIONS, "connections that are open", _From.COUNT),
        _number("max_connections", _Unit.CONNECTIONS, "most connections of the user to one router", _From.TOPOLOGY),
        _number("links", _Unit.LINKS, "links that are attached", _From.COUNT),
        *_TRAFFIC_OF_CLIENTS,
    ),
)

QUEUE: Final = Entity(
    "queue",
    "queues",
    "A queue, or the subscription of a topic, at an embedded broker.",
    (
        _ID,
        _NODE,
        _text("address", "address of the queue or topic"),
        _text("pattern", "declared address or pattern of the topology that covers the address", _From.TOPOLOGY),
        _text("subscriber", "subscriber, if the queue is a subscription"),
        _number("depth", _Unit.MESSAGES, "messages in the queue", _From.RECORD),
        _number("max_messages", _Unit.MESSAGES, "most messages in the queue; none for any number", _From.TOPOLOGY),
        _number("depth_bytes", _Unit.BYTES, "size of the messages in the queue", _From.RECORD),
        _number("max_bytes", _Unit.BYTES, "most bytes of messages in the queue; none for any number", _From.TOPOLOGY),
        _number("acquired", _Unit.MESSAGES, "messages in the queue that consumers have, without an outcome yet",
                _From.RECORD),
        _number("oldest_s", _Unit.SECONDS, "age of the oldest message", _From.RECORD),
        _counter("enqueued", _Unit.MESSAGES, "messages that entered the queue"),
        _counter("dequeued", _Unit.MESSAGES, "messages that consumers took and settled"),
        _counter("expired", _Unit.MESSAGES, "messages that expired"),
        _counter("dead_lettered", _Unit.MESSAGES, "messages that moved to the dead-letter queue"),
        _counter("removed", _Unit.MESSAGES, "messages that left for another reason: refused, dropped, purged, moved, "
                 "queue deleted"),
    ),
)  # fmt: skip

NEIGHBOR: Final = Entity(
    "neighbor",
    "neighbors",
    "A router that a router is connected to, as the link state has it.",
    (
        _ID,
        _NODE,
        _text("neighbor", "the router at the other end"),
        _number("cost", _Unit.COST, "cost of the connection", _From.RECORD),
        _number(
            "since",
            _Unit.UTC_SECONDS,
            "when the neighbor came up; unknown if the observer started later",
            _From.RECORD,
        ),
    ),
)

PATH: Final = Entity(
    "path",
    "paths",
    "The cheapest path from a router to another router.",
    (
        _ID,
        _NODE,
        _text("egress", "router at the other end"),
        _text("path", "routers from this node on, with > between them"),
        _number("cost", _Unit.COST, "cost of the path", _From.RECORD),
        _number(
            "since",
            _Unit.UTC_SECONDS,
            "when this path was chosen; unknown if the observer started later",
            _From.RECORD,
        ),
    ),
)

EVENT: Final = Entity(
    "event",
    "events",
    "An event in the log of a node. Events are listed from the newest on; `amqpmesh explain EVENT` tells the meaning.",
    (
        _number("at", _Unit.UTC_SECONDS, "when the node logged the event", _From.LOG),
        _text("node", "name of the log: that of the node, or of a process beside the nodes", _From.LOG),
        _text("level", "debug, info, warning, error", _From.LOG),
        _text("event", "name of the event; output: any other line, as of a crash", _From.LOG),
        EntityField("fields", EntityFieldType.MAP, "fields of the event, as its reference has them", _From.LOG),
    ),
)

FINDING: Final = Entity(
    "finding",
    "findings",
    "A thing that is wrong in the mesh now, with what to do. Findings are listed from the worst on.",
    (
        _text("id", "name of the finding, which stays the same while the finding lasts", _From.OBSERVER),
        _text("kind", "lost, silent, unknown: a node; missing: a connection of the topology; waiting: producers lack "
              "credit; old: a queue whose oldest message is older than a minute", _From.OBSERVER),
        _text("subject", "the node, connection or address", _From.OBSERVER),
        _text("text", "sentence: what is wrong, and who is hit", _From.OBSERVER),
        _text("fix", "sentence: what to do; commands stand between backticks", _From.OBSERVER),
        _text("view", "path of the console's page that shows more", _From.OBSERVER),
        EntityField("parameters", EntityFieldType.MAP, "parameters of that page", _From.OBSERVER),
        _number("since", _Unit.UTC_SECONDS, "since when it is so; unknown if nobody saw the begin", _From.OBSERVER),
    ),
)  # fmt: skip

ENTITIES: Final = (NODE, CONNECTION, LINK, ADDRESS, PATTERN, USER, QUEUE, NEIGHBOR, PATH)
BY_PLURAL: Final = {entity.plural: entity for entity in ENTITIES}
LISTS: Final = (EVENT, FINDING)
"""Entities that the observer reads from logs, or judges, when asked: lists in an order of their own."""
