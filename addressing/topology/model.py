"""The model of a topology file: all keys, with types, defaults and ranges.

The keys of brokers are in ``broker_settings``, the keys of ``link_logs`` in ``link_log_settings``,
those of ``logs``, ``metrics`` and ``watch`` in ``log_settings``, ``metric_settings`` and ``watch_settings``. Rules
that span several places of the file (names must exist, ports must differ) are in ``checks``; ``loader`` reads files and
reports all mistakes.

Units: ``_s`` seconds, ``_bytes`` octets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PrivateAttr

from addressing.kinds import AddressKind, Distribution
from addressing.priority import DEFAULT_PRIORITY, MAX_PRIORITY
from addressing.queue_policy import WhenFull
from addressing.records import Level
from addressing.topology.broker_settings import FIRST_BROKER_PORT, Broker
from addressing.topology.broker_url import AMQP_PORT, AMQPS_PORT
from addressing.topology.credentials import check_secret
from addressing.topology.link_log_settings import LinkLogs
from addressing.topology.log_settings import Logs
from addressing.topology.metric_settings import Metrics
from addressing.topology.part import (
    MAX_LIMIT,
    AddressPattern,
    Host,
    LongSeconds,
    NodeName,
    NodeNames,
    PermissionPatterns,
    Port,
    RouterName,
    Seconds,
    TopologyPart,
    UserName,
    checked,
)
from addressing.topology.queries import MAX_COST, Authentication, RouterMode, RouterQueries, TopologyQueries
from addressing.topology.watch_settings import Watch

# Port of the first router by default: outside of Linux's range for outgoing connections (32768 and up), so that no
# connection takes the port by chance when a node starts, and clear of RabbitMQ's 15672 and 25672.
FIRST_ROUTER_PORT = 26671


class ListenerTls(TopologyPart):
    """TLS of a listener. With `true`, or without `cert`, the authority of the mesh issues the certificate."""

    cert: Path | None = None
    """PEM file with the certificate, and any intermediate ones after it."""
    key: Path | None = None
    """PEM file with the private key of the certificate."""
    ca: Path | None = None
    """PEM file with the authorities that sign certificates of clients (default: the authority of the mesh)."""


def _tls_or_none(value: Any) -> Any:
    """Return what ``value`` stands for after the key ``tls``: true for a mapping of defaults, false for None (no TLS).

    Any other value is returned unchanged.
    """
    return {True: {}, False: None}[value] if isinstance(value, bool) else value


class Listener(TopologyPart):
    """A port where a router listens for clients, and its limits. A bare number is short for {port: NUMBER}."""

    host: Host = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for all IPv4 addresses, '::' for all addresses."""
    port: Port = AMQP_PORT
    """Port to listen on (default: 5672, with TLS 5671)."""
    tls: Annotated[ListenerTls | None, BeforeValidator(_tls_or_none)] = None
    """true: TLS with a certificate of the mesh. A mapping names a certificate of your own."""
    authentication: Authentication = Field(default=Authentication.NONE, json_schema_extra={"default": None})
    """Whether clients must authenticate. Default: required once any user is defined, else none."""
    max_connections: int = Field(default=10_000, ge=1)
    """More connections than this are refused."""
    max_links: int = Field(default=10_000, ge=1)
    """More links than this on one connection are refused."""
    max_frame_bytes: int = Field(default=32_768, ge=512, le=16_777_216)
    """Largest frame a client may send."""
    max_message_bytes: int = Field(default=0, ge=0)
    """Largest message a client may send; 0 for no limit."""
    idle_timeout_s: Seconds = 16.0
    """A client that is silent for this long counts as dead."""
    sender_stall_timeout_s: Seconds = 10.0
    """A client that could send more of a message it began, but sends no byte for this long, loses the link."""
    handshake_timeout_s: Seconds = 10.0
    """A connection must be open within this time."""
    link_capacity: int = Field(default=1000, ge=1, le=65_535)
    """Most credit of a sending client on one link; 250 at most on a link without an address."""

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return {"port": value}
        if isinstance(value, dict) and value.get("tls") not in (None, False):
            return {"port": AMQPS_PORT, **value}
        return super()._from_shorthand(value)


class Connection(TopologyPart):
    """A connection that a router declares to another router. A bare name is short for {to: NAME}."""

    to: str
    """Router to connect to."""
    cost: int = Field(default=1, ge=1, le=MAX_COST)
    """Cost of this connection; traffic takes the cheapest path."""
    host: Host | None = None
    """Host to dial, if not the host of the router: a port forward, a tunnel, a proxy."""
    port: Port | None = None
    """Port to dial, if not the port of the router."""

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        return {"to": value} if isinstance(value, str) else value


class Router(TopologyPart, RouterQueries):
    """A router of the mesh: the ports to listen on, and the names of the routers to connect to."""

    mode: RouterMode = RouterMode.INTERIOR
    """'edge' knows no paths: the router uses one of the routers in its 'connect', the cheapest, else the next."""
    host: Host = "127.0.0.1"
    """Host where the other nodes reach this router, and where the router listens for other nodes."""
    port: Port = Field(default=FIRST_ROUTER_PORT, json_schema_extra={"default": None})
    """Port for other nodes (default: 26671 plus the position of the router in the file, from 0)."""
    listeners: tuple[Listener, ...] = ()
    """Ports for clients."""
    connect: tuple[Connection, ...] = ()
    """Routers to connect to. Either end declares a connection; for an edge router, the edge declares the connection."""


class DeclaredAddress(TopologyPart):
    """Treatment of an address, or of every address of a pattern. A bare word is short for {type: WORD}."""

    type: AddressKind
    """anycast: to one consumer. multicast: to every consumer. queue, topic: kept by a broker. unavailable: refused."""
    distribution: Distribution = Distribution.BALANCED
    """anycast: 'balanced' evens out the work; 'closest' sends to the cheapest path alone while a consumer is there."""
    spill: bool = False
    """anycast, closest: while the closest consumers have no credit, other consumers with credit get messages, too."""
    broker: str | None = None
    """queue, topic: the broker of the address (default: default_broker, or the only broker)."""
    brokers: NodeNames = ()
    """queue: brokers that share it; order is per broker. No filters, browsing, durable links (amqp:not-implemented)."""
    broker_address: str = ""
    """queue, topic: name at the broker, if the broker's name differs."""
    fallback: AddressPattern | None = None
    """anycast: the queue for messages that no consumer takes, and for all messages while the queue holds any."""
    priority: int = Field(default=DEFAULT_PRIORITY, ge=0, le=MAX_PRIORITY)
    """Priority of deliveries where a connection is short of room: 9 goes before 0."""
    dead_letter: str | None = None
    """queue, topic: the queue, on the same broker, for messages that consumers reject, or fail to settle too often."""
    max_delivery_attempts: int | None = Field(
        default=None, ge=1, le=65_534, strict=True, json_schema_extra={"default": None}
    )
    """With dead_letter: most deliveries of a message to consumers that fail (default: 10)."""
    expiry: str | None = None
    """queue, topic: the queue, on the same broker, for messages whose time to live is over (default: no queue)."""
    max_messages: int | None = Field(default=None, ge=1, le=MAX_LIMIT, strict=True)
    """queue, topic: most messages in the queue, or in a subscription (default: as many as the disk has room for)."""
    max_bytes: int | None = Field(default=None, ge=1, le=MAX_LIMIT, strict=True)
    """queue, topic: most bytes of messages in the queue, or in a subscription."""
    when_full: WhenFull | None = None
    """Action of a full queue: block producers (default), reject, drop-oldest (default of a topic), or dead-letter."""
    max_queues: int | None = Field(default=None, ge=1, le=MAX_LIMIT, strict=True, json_schema_extra={"default": None})
    """queue, of a pattern: most queues under the pattern, on each broker (default: 100,000)."""
    max_queues_per_user: int | None = Field(
        default=None, ge=1, le=MAX_LIMIT, strict=True, json_schema_extra={"default": None}
    )
    """queue, of a pattern: most queues that one user makes under the pattern, on each broker (default: 20,000)."""
    queue_expiry_s: LongSeconds | None = Field(default=None, json_schema_extra={"default": None})
    """queue, of a pattern: a queue that is empty, and that no link uses for so long, is deleted (default: a day)."""
    retransmit: bool = False
    """anycast: resend, with delivery-count raised, a message that was on its way to a lost router or consumer."""
    link_log: Level | None = None
    """Level of the link log for the address: off, summary, or full, which is every delivery (default: as link_logs)."""
    subscription_expiry_s: LongSeconds | None = None
    """topic: a durable subscription without a consumer for so long is deleted with its messages (default: never)."""
    fill_to: bool = False
    """topic, multicast: an empty property `to` gets the address; of multicast only in copies for filters (`a.#`)."""

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        return {"type": value} if isinstance(value, str) else super()._from_shorthand(value)


class User(TopologyPart):
    """A user, with the addresses to send to and receive from. Without a password, a user logs in by certificate only.

    The user `anonymous` stands for clients without a login.
    """

    password: Annotated[str, checked(check_secret)] | None = Field(default=None, repr=False)
    """SCRAM-SHA-256 secret, made by `amqpmesh user add`."""
    send: PermissionPatterns = ()
    """Patterns of addresses to send to; ${user} stands for the user's name."""
    receive: PermissionPatterns = ()
    """Patterns of addresses to receive from; ${user} stands for the user's name."""
    view: PermissionPatterns = ()
    """Patterns of addresses whose counts, links and message headers the user may see; # shows the whole mesh."""
    browse: PermissionPatterns = ()
    """Patterns of queues and topics whose messages the user may see with their bodies; allows to view, too."""
    manage: PermissionPatterns = ()
    """Patterns of addresses that the user may change: purge, move, delete; # allows to close connections, too."""
    max_connections: int | None = Field(default=None, ge=1)
    """Most connections of this user to one router (default: any number); further connections are refused."""


class Topology(TopologyPart, TopologyQueries):
    """A mesh: routers, the connections between them, brokers, addresses and users."""

    mesh: NodeName
    """Name of the mesh; brokers see the name as the container-id of every router."""
    node_tls: bool = True
    """Mutual TLS between the nodes of the mesh. false: plain text, for trusted networks only."""
    hello_interval_s: Annotated[float, Field(ge=0.1, le=60, allow_inf_nan=False)] = 1.0
    """Interval between HELLO messages of a router to its neighbors."""
    hello_max_age_s: Seconds = Field(default=3.0, json_schema_extra={"default": None})
    """A router that is silent for so long is dead to its neighbor (default: 3 times hello_interval_s)."""
    routers: dict[RouterName, Router] = Field(json_schema_extra={"minProperties": 1})
    """Routers by name."""
    brokers: dict[NodeName, Broker] = Field(default_factory=dict)
    """Brokers by name."""
    addresses: dict[AddressPattern, DeclaredAddress] = Field(default_factory=dict)
    """Addresses by name or pattern: * stands for one token, # for any number; exact names before *, * before #."""
    users: dict[UserName, User] = Field(default_factory=dict)
    """Users by name. Once there is any user, everything that is not allowed is denied."""
    default_broker: str | None = None
    """Broker for queues and topics that name no broker (default: the only broker)."""
    link_logs: LinkLogs = Field(default_factory=LinkLogs)
    """Records that nodes make of connections, links and deliveries, and how many records are kept."""
    metrics: Metrics = Field(default_factory=Metrics)
    """Which counters outlive their addresses, and which declared addresses have no metrics."""
    watch: Watch = Field(default_factory=Watch)
    """Observer of the nodes: whether one runs, and where it answers."""
    logs: Logs = Field(default_factory=Logs)
    """Files with the nodes' events: how large and old one gets, and how many are kept."""

    _file: Path | None = PrivateAttr(default=None)

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        return with_defaults(value) if isinstance(value, dict) else value

    @property
    def file(self) -> Path | None:
        """The file that the topology was read from; None if the topology was made in memory, as from a text."""
        return self._file


def with_defaults(source: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a file's data, ``source``, with defaults that depend on other parts of the file.

    These are ``hello_max_age_s``, the ports of routers and embedded brokers by position, and, in a file with users,
    ``authentication: required`` of listeners.
    """
    filled = dict(source)
    interval_s = source.get("hello_interval_s")
    if isinstance(interval_s, int | float) and interval_s > 0 and source.get("hello_max_age_s") is None:
        filled["hello_max_age_s"] = 3 * interval_s
    for section, first_port in (("routers", FIRST_ROUTER_PORT), ("brokers", FIRST_BROKER_PORT)):
        nodes = source.get(section)
        if isinstance(nodes, dict):
            filled[section] = {name: _with_port(node, first_port + i) for i, (name, node) in enumerate(nodes.items())}
    if source.get("users") and isinstance(filled.get("routers"), dict):
        filled["routers"] = {name: _with_authentication(router) for name, router in filled["routers"].items()}
    return filled


def _with_port(node: Any, port: int) -> Any:
    if node is None:
        return {"port": port}
    # An existing broker gets no default port, since its URL has the port.
    is_ours = isinstance(node, dict) and "url" not in node
    return {"port": port, **{key: item for key, item in node.items() if item is not None}} if is_ours else node


def _with_authentication(router: Any) -> Any:
    if not isinstance(router, dict) or not isinstance(router.get("listeners"), list | tuple):
        return router
    return {**router, "listeners": [_require_authentication(listener) for listener in router["listeners"]]}


def _require_authentication(listener: Any) -> Any:
    mapping = Listener._from_shorthand(listener)
    return {"authentication": Authentication.REQUIRED, **mapping} if isinstance(mapping, dict) else listener
