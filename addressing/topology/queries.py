"""The answers that a topology, its routers and its brokers give beyond their keys.

The models inherit these classes, and so do the plain parts that a node has in place of the models.

Nothing here reads or checks files, so a node that has its topology from elsewhere needs no library for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from addressing.kinds import AddressKind
from addressing.records import Level
from addressing.topology.broker_url import BrokerUrl, parse_broker_url

MAX_COST = 1_000_000


class Authentication(StrEnum):
    """Whether the clients of a listener must authenticate, may authenticate, or are all anonymous."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    NONE = "none"


class RouterMode(StrEnum):
    """Whether a router finds paths for others (interior), or has one way into the mesh (edge)."""

    INTERIOR = "interior"
    EDGE = "edge"


class Subscriptions(StrEnum):
    """Whether names of links and durable subscriptions at an existing broker contain the user (by_user) or not."""

    BY_NAME = "by_name"
    BY_USER = "by_user"


@dataclass(frozen=True, slots=True)
class Edge:
    """A connection between two routers: ``dialer`` dials ``to``, where ``to`` listens.

    A ``host`` or ``port`` that is not None is dialed in place of the host or port of ``to``.
    """

    dialer: str
    to: str
    cost: int
    host: str | None = None
    port: int | None = None


class AddressKeys(Protocol):
    """The keys of a declared address that the topology looks at."""

    @property
    def type(self) -> AddressKind: ...
    @property
    def broker(self) -> str | None: ...
    @property
    def brokers(self) -> tuple[str, ...]: ...
    @property
    def link_log(self) -> Level | None: ...


class RouterQueries:
    """The answers of a router of a topology beyond its keys."""

    if TYPE_CHECKING:
        mode: RouterMode
        connect: tuple[Any, ...]

    @property
    def is_edge(self) -> bool:
        return self.mode is RouterMode.EDGE


class BrokerQueries:
    """The answers of a broker of a topology beyond its keys."""

    if TYPE_CHECKING:
        data: Path | None
        url: str | None
        subscriptions: Subscriptions
        routers: tuple[str, ...]

    @property
    def is_embedded(self) -> bool:
        return self.data is not None

    @property
    def names_users(self) -> bool:
        """Say whether the names that routers give links at the broker contain the client's user."""
        return self.subscriptions is Subscriptions.BY_USER

    @property
    def location(self) -> BrokerUrl | None:
        """The parsed URL of an existing broker; None for an embedded broker, which has no URL."""
        return parse_broker_url(self.url) if self.url is not None else None


class TopologyQueries:
    """The answers of a topology beyond its keys."""

    if TYPE_CHECKING:
        mesh: str
        routers: Mapping[str, RouterQueries]
        brokers: Mapping[str, BrokerQueries]
        addresses: Mapping[str, AddressKeys]
        default_broker: str | None
        link_logs: Any
        watch: Any

        @property
        def file(self) -> Path | None: ...

    @property
    def directory(self) -> Path:
        """The folder that relative paths in the topology start from: the folder of its file, else the current one."""
        return self.file.parent if self.file else Path.cwd()

    @property
    def work_dir(self) -> Path:
        """The folder ``.amqpmesh/<mesh>`` for files of the mesh's running nodes: certificates, sockets, logs."""
        return self.directory / ".amqpmesh" / self.mesh

    def locate(self, path: Path) -> Path:
        """Return ``path``, a path in the topology, below ``directory`` if it is relative, and with ~ expanded."""
        return self.directory / path.expanduser()

    @property
    def node_names(self) -> tuple[str, ...]:
        """The nodes that amqpmesh runs: all routers, then the embedded brokers."""
        return (*self.routers, *(name for name, broker in self.brokers.items() if broker.is_embedded))

    def edges(self) -> Iterator[Edge]:
        """Yield the connections between routers, in the order of the file."""
        for name, router in self.routers.items():
            for connection in router.connect:
                yield Edge(name, connection.to, connection.cost, connection.host, connection.port)

    @property
    def interior_routers(self) -> tuple[str, ...]:
        return tuple(name for name, router in self.routers.items() if not router.is_edge)

    @property
    def edge_routers(self) -> tuple[str, ...]:
        return tuple(name for name, router in self.routers.items() if router.is_edge)

    def costs_at(self, router: str) -> dict[str, int]:
        """Return the costs of the connections of ``router``, by the router at the other end.

        For an edge router, the cheapest connection comes first; else the order is that of the file.
        """
        costs = {
            edge.to if edge.dialer == router else edge.dialer: edge.cost
            for edge in self.edges()
            if router in (edge.dialer, edge.to)
        }
        return dict(sorted(costs.items(), key=lambda item: item[1])) if self.routers[router].is_edge else costs

    def routers_of(self, broker: str) -> tuple[str, ...]:
        """The routers that connect to ``broker``: those that the broker names, else all interior routers."""
        return self.brokers[broker].routers or self.interior_routers

    def brokers_at(self, router: str) -> tuple[str, ...]:
        """The brokers that ``router`` connects to, in the order of the file."""
        return tuple(broker for broker in self.brokers if router in self.routers_of(broker))

    @property
    def fallback_broker(self) -> str | None:
        """The broker of queues and topics that name none: ``default_broker``, else the only broker, else None."""
        if self.default_broker is not None:
            return self.default_broker
        return next(iter(self.brokers)) if len(self.brokers) == 1 else None

    @property
    def subscription_broker(self) -> str | None:
        """The broker of a durable subscription that a client attaches to by its name alone, without an address.

        The default broker or the only broker, else the only broker with topics, else None.
        """
        topics = [each for each in self.addresses.values() if each.type.has_subscriptions]
        having = {broker for each in topics for broker in self.brokers_of(each)}
        return self.fallback_broker or (having.pop() if len(having) == 1 else None)

    @property
    def is_recorded(self) -> bool:
        """Whether nodes record to their rings: the record level of the mesh, or of any address, is not off."""
        levels = {each.link_log for each in self.addresses.values()}
        return not levels | {self.link_logs.level} <= {None, Level.OFF}

    @property
    def is_watched(self) -> bool:
        """Whether `amqpmesh up` starts an observer: the nodes have to record, as the observer reads their records."""
        return self.is_recorded and self.watch.mode == "on"

    @property
    def is_kept(self) -> bool:
        """Whether the records of nodes are kept in files: the nodes record, and `link_logs` does not say otherwise."""
        return self.is_recorded and bool(self.link_logs.keep)

    def brokers_of(self, address: AddressKeys) -> tuple[str, ...]:
        """Return the brokers of a declared address: several for a sharded queue, none if it is not a queue or topic.

        None, too, for a queue or topic that names no broker, if the topology has no broker for such addresses.
        """
        if not address.type.is_stored:
            return ()
        if address.brokers:
            return address.brokers
        name = address.broker or self.fallback_broker
        return (name,) if name else ()
