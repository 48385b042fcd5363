"""The broker connections of this router: one base connection to each broker, and others for the link routes of clients.

Every router uses the mesh's name as container-id towards brokers. The base connection shows that the broker is up and
carries waypoint links, the router's own links to queues and topics. The link routes of many clients share connections
to an embedded broker; at an existing broker, the link routes of each client share a connection of their own, since
transactions are scoped to a connection.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from addressing.book import AddressPolicy
from addressing.kinds import AddressKind
from router.connections.broker_connection import BrokerConnection
from router.connections.route_connections import OnConnection, RouteClaim, RouteConnections
from router.events import BrokerDown, BrokerUp
from router.timers import Timers
from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, EndpointSettings, Peer
from wire.errors import AmqpError
from wire.link import RECEIVE_SECOND, SEND_MIXED, IncomingLink, OutgoingLink
from wire.log import Emit
from wire.node import Command, ConnectorSpec, OpenConnector
from wire.routed_name import USER
from wire.terminus import WAITS_WHEN_FULL, source, target

_NAMED_CHARS = 64
"""The name of a link to a broker ends with so many characters of the address, for people; termini have all of it."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """How to reach one broker. ``connector(name)`` returns the spec of a connector of that name to the broker."""

    name: str
    endpoint: EndpointSettings
    connector: Callable[[str], ConnectorSpec]
    needs_kind: bool = False
    """True for a broker that is not embedded, and so does not know the mesh's addresses: the terminus of each link must
    say whether its address is a queue or a topic.
    """
    may_share: bool = False
    """Whether the links of many clients may share connections to a broker that is not embedded."""

    @property
    def shares_connections(self) -> bool:
        """Whether the link routes of many clients share a connection to this broker."""
        return self.may_share or not self.needs_kind


@dataclass(frozen=True, slots=True)
class BrokerConnectionSnapshot:
    broker: str
    is_up: bool
    container_id: str | None
    down_reason: str | None
    routes: int


class BrokerSite:
    """This router's connections to one broker: the base connection, and the connections for link routes of clients."""

    def __init__(self, settings: BrokerSettings, owner: Brokers, timers: Timers, commands: list[Command]) -> None:
        self.settings = settings
        self.base: BrokerConnection | None = None
        self.down_reason: str | None = "not connected yet"
        self.routes = RouteConnections(
            settings.name,
            lambda route: settings.connector(route_connector(settings.name, route)),
            timers,
            commands,
            shares=settings.shares_connections,
            has_session_each=settings.needs_kind,
        )
        self._owner = owner

    def on_opened(self, connection: BrokerConnection) -> None:
        if connection.route is None:
            self.base, self.down_reason = connection, None
            remote = connection.endpoint.remote
            self._owner.on_up(self, remote.container_id if remote else "")
        else:
            self.routes.on_opened(connection, connection.route)

    def on_lost(self, connection: BrokerConnection, reason: str) -> None:
        if connection.route is not None:
            known = connection if connection.was_opened else None
            self.routes.on_lost(known, connection.route, connection.endpoint.close_error)
        elif self.base is connection:
            self.base, self.down_reason = None, reason
            self._owner.on_down(self, reason)
        else:
            self.down_reason = reason

    def on_connect_failed(self, route: str | None, reason: str) -> None:
        if route is None:
            self.down_reason = reason
        else:
            self.routes.on_lost(None, route)


class Brokers:
    """The connections of this router to all its brokers, and the links that the router makes on the base connections.

    ``on_change(broker)`` is called when the base connection to ``broker`` opened or was lost.
    """

    def __init__(
        self,
        router_id: str,
        settings: Mapping[str, BrokerSettings],
        timers: Timers,
        on_change: Callable[[str], None],
        emit: Emit,
    ) -> None:
        self._router_id = router_id
        self._on_change = on_change
        self._emit = emit
        self._link_count = itertools.count(1)
        self.commands: list[Command] = [
            OpenConnector(each.connector(f"broker:{name}")) for name, each in settings.items()
        ]
        self._sites = {name: BrokerSite(each, self, timers, self.commands) for name, each in settings.items()}

    def is_up(self, broker: str) -> bool:
        site = self._sites.get(broker)
        return site is not None and site.base is not None and site.base.endpoint.is_open

    def kind_capabilities(self, broker: str, kind: AddressKind) -> tuple[str, ...]:
        """Return the capabilities by which a terminus at ``broker`` says queue or topic; none for an embedded broker.

        Artemis would make a topic of an address that is not marked as a queue.
        """
        return kind.capabilities if self._sites[broker].settings.needs_kind else ()

    def is_embedded(self, broker: str) -> bool:
        """True if ``broker`` is an embedded one, which knows the owners of queues: links there say the user's name."""
        return not self._sites[broker].settings.needs_kind

    # Methods that make waypoint links: this router's own links to queues and topics, on the base connection. Each
    # method raises AmqpError if the link cannot be made.
    def sender(
        self,
        broker: str,
        policy: AddressPolicy,
        role: str = "out",
        *,
        user: str | None,
        is_stream: bool = False,
    ) -> OutgoingLink:
        """Return a new link, not opened yet, to send to the address of ``policy`` at ``broker``.

        The target of a link for all addresses of a pattern has no address. [ANONYMOUS-RELAY]
        ``user`` becomes the owner of the queue if an embedded broker creates the queue for this link. ``is_stream``:
        the link is for large deliveries, and gets a session of its own while the broker has sessions to spare.
        """
        base = self._base(broker)
        session = base.session_of_stream() if is_stream else base.sessions.shared()
        name, address = policy.at_broker(broker), policy.target_at_broker(broker)
        link = session.sender(self._name(role, name))
        link.set_source(source(name))
        capabilities = (WAITS_WHEN_FULL,) if policy.may_be_full else self.kind_capabilities(broker, policy.kind)
        link.set_target(target(address, capabilities=capabilities))
        self._say_user(link, broker, user)
        link.check_fits()
        return link

    def _say_user(self, link: IncomingLink | OutgoingLink, broker: str, user: str | None) -> None:
        if user is not None and self.is_embedded(broker):
            link.set_property(USER, user)

    def receiver(
        self, broker: str, address: str, kind: AddressKind, role: str = "in", *, user: str | None = None
    ) -> IncomingLink:
        link = self._base(broker).sessions.shared().receiver(self._name(role, address))
        link.set_source(source(address, capabilities=self.kind_capabilities(broker, kind)))
        link.set_target(target(address))
        self._say_user(link, broker, user)
        # With rcv-settle-mode second on this link, the broker settles first, once the outcome is on disk: only then
        # does a consumer that asked for rcv-settle-mode second see its delivery settled.
        link.set_settle_modes(SEND_MIXED, RECEIVE_SECOND)
        link.check_fits()
        return link

    def _name(self, role: str, address: str) -> str:
        # All routers are one container to a broker: the name of a link distinguishes the routers' links, and a new link
        # from one that is ending.
        return f"{role}/{self._router_id}/{next(self._link_count)}/{address[:_NAMED_CHARS]}"

    def _base(self, broker: str) -> BrokerConnection:
        base = self._sites[broker].base
        if base is None:
            raise AmqpError("amqp:not-found", f"this router has no base connection to broker {broker}")
        return base

    # Link routes
    def shares_connections(self, broker: str) -> bool:
        """Whether the link routes of many clients share a connection to ``broker``."""
        return self._sites[broker].settings.shares_connections

    def claim(
        self, claim: RouteClaim, broker: str, client: str, ready: OnConnection, *, is_apart: bool = False
    ) -> None:
        """Call ``ready`` with a connection for link routes of ``client`` to ``broker``, which is dialed if missing.

        Call ``ready`` with None if the connection fails, at once if ``broker`` is down or the client is refused.
        ``claim`` keeps the connection open; ``ready`` is not called once the claim is released. ``is_apart``: no other
        client may have links on the connection.
        """
        if self.is_up(broker):
            self._sites[broker].routes.claim(claim, client, ready, is_apart=is_apart)
        else:
            ready(None, None)

    # Connections
    def on_connected(self, connector: str, peer: Peer, number: int, dirty: DirtyEndpoints) -> BrokerConnection:
        broker, route = parse_connector(connector)
        site = self._sites[broker]
        endpoint = Endpoint(site.settings.endpoint, peer, dirty)
        connection = BrokerConnection(endpoint, number, site, route)
        endpoint.open()
        return connection

    def on_connect_failed(self, connector: str, reason: str) -> None:
        broker, route = parse_connector(connector)
        self._sites[broker].on_connect_failed(route, reason)

    def on_up(self, site: BrokerSite, container_id: str) -> None:
        self._emit(BrokerUp(site.settings.name, container_id))
        self._on_change(site.settings.name)

    def on_down(self, site: BrokerSite, reason: str) -> None:
        self._emit(BrokerDown(site.settings.name, reason))
        self._on_change(site.settings.name)

    def snapshot(self) -> tuple[BrokerConnectionSnapshot, ...]:
        return tuple(
            BrokerConnectionSnapshot(
                broker=name,
                is_up=self.is_up(name),
                container_id=_container(site.base),
                down_reason=site.down_reason,
                routes=len(site.routes),
            )
            for name, site in self._sites.items()
        )


def route_connector(broker: str, route: str) -> str:
    return f"broker:{broker}:{route}"


def parse_connector(name: str) -> tuple[str, str | None]:
    """Return (broker, route) from the name of a connector to a broker; route is None for the base connection."""
    _, broker, *route = name.split(":", 2)
    return broker, route[0] if route else None


def is_broker_connector(name: str) -> bool:
    return name.startswith("broker:")


def _container(connection: BrokerConnection | None) -> str | None:
    remote = connection.endpoint.remote if connection is not None else None
    return remote.container_id if remote is not None else None
