"""Connections to one broker for link routes: one connection for each client or, at some brokers, for many clients.

    no claim --first claim--> dialing --OPEN--> open --last claim released--> lingering --2 s--> dropped
                                 \\--last claim released, or the attempt failed-----------------/

A link route claims a connection of its client before the route's first byte is sent, and releases the claim when the
route ends, in whatever state the connection is by then. If the last route ends while the connection is being dialed,
the attempt ends.

When a shared connection closes with an error, one of its clients may be the cause: the clients are then divided over
fresh connections (`router.connections.route_blame`).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from itertools import islice

from router.connections.broker_connection import BrokerConnection
from router.connections.route_blame import RouteBlame
from router.timers import Timer, Timers
from wire.errors import AmqpError
from wire.node import Command, ConnectorSpec, DropConnector, OpenConnector

_LINGER_S = 2.0
"""How long a connection without claims stays open, for a client that attaches one link after the other."""
MAX_LINGERING = 32
"""Most connections without claims to one broker; beyond, the oldest is dropped. Short-lived clients must not use up the
router's file descriptors.
"""
MOST_CLIENTS = 500
"""A shared connection with so many clients takes no other client: the engine frees a lost connection in one go, which
takes some milliseconds with 500 sessions, and an error of one client concerns no more of them.
"""
_CROWD_CLAIMS = 2 * MOST_CLIENTS
"""A shared connection with so many claims takes no other client: the engine looks for a free channel one by one."""
MOST_CLAIMS = 16_384
"""A shared connection with so many claims takes no other: it has more sessions than claims, whatever the claims are."""
_MOST_SESSIONS_EACH = 60
"""Most claims on a shared connection to an existing broker, where each link has a session of its own: RabbitMQ takes 64
sessions.
"""
_CLAIMS_AT_ONCE = 32
_TURN_S = 0.001
"""Claims are told of a connection 32 at a time, and the node serves its other inputs in between."""

OnConnection = Callable[[BrokerConnection | None, AmqpError | None], None]
"""Called with the connection. Or with None and the error for a client that is refused, None if a retry may help."""


class RouteClaim:
    """One link route's claim on a connection to a broker: a connection with claims stays open.

    The route makes the claim, and releases the claim when the route ends.
    """

    __slots__ = ("_owner", "_ready", "_route", "client")

    def __init__(self) -> None:
        self.client = ""
        self._owner: RouteConnections | None = None
        self._route: RouteConnection | None = None
        self._ready: OnConnection | None = None

    def wait(self, owner: RouteConnections, route: RouteConnection, client: str, ready: OnConnection) -> None:
        """Have `tell` call ``ready`` once, with the connection or None on failure, unless the claim was released."""
        self._owner, self._route, self.client, self._ready = owner, route, client, ready

    def tell(self, connection: BrokerConnection | None) -> None:
        ready, self._ready = self._ready, None
        if ready is not None:
            ready(connection, None)

    def release(self) -> None:
        """Give up the claim: `tell` calls nothing from now on.

        If it was the connection's last claim, an open connection ends after 2 s without a new claim, and a connection
        that is being dialed ends at once. Do nothing for a claim that was released before, or was never made.
        """
        owner, route = self._owner, self._route
        self._owner = self._route = self._ready = None
        if owner is not None and route is not None:
            owner.on_released(self, route)


class RouteConnection:
    """The state of one connection for link routes to a broker, from the first claim on.

    ``connection`` is None until the broker's OPEN arrives. ``waiting`` are the claims that were not told yet.
    ``linger`` runs while the open connection has no claim.
    """

    __slots__ = ("claims", "clients", "connection", "is_shared", "linger", "name", "waiting")

    def __init__(self, name: str, *, is_shared: bool) -> None:
        self.name = name
        self.is_shared = is_shared
        self.connection: BrokerConnection | None = None
        self.claims: dict[RouteClaim, None] = {}
        self.waiting: dict[RouteClaim, None] = {}
        self.clients: Counter[str] = Counter()
        """For each client, the number of its claims."""
        self.linger: Timer | None = None


class RouteConnections:
    """The connections to one broker for link routes.

    ``connector(name)`` makes the spec of a connector; commands for the driver go to ``commands``. ``shares``: whether
    many clients share a connection. ``has_session_each``: each link has a session of its own.

    Always: a connector exists for exactly the names in ``_routes``. A connection in ``_lingering`` is open and has no
    claim; every other connection in ``_routes`` has claims.
    """

    def __init__(
        self,
        broker: str,
        connector: Callable[[str], ConnectorSpec],
        timers: Timers,
        commands: list[Command],
        *,
        shares: bool,
        has_session_each: bool = False,
    ) -> None:
        self._connector = connector
        self._timers = timers
        self._commands = commands
        self._shares = shares
        self._has_session_each = has_session_each
        self._count = itertools.count(1)
        self._routes: dict[str, RouteConnection] = {}
        self._of_client: dict[str, RouteConnection] = {}
        """The connection for further claims of a client that has claims."""
        self._with_room: dict[RouteConnection, None] = {}
        """Shared connections that take another client."""
        self._lingering: dict[RouteConnection, None] = {}
        self._blame = RouteBlame(broker, timers)

    def __len__(self) -> int:
        return len(self._routes)

    @property
    def names(self) -> list[str]:
        """The names of the connections for link routes to the broker, also of those that are being dialed."""
        return list(self._routes)

    @property
    def claim_count(self) -> int:
        return sum(len(route.claims) for route in self._routes.values())

    def claim(self, claim: RouteClaim, client: str, ready: OnConnection, *, is_apart: bool = False) -> None:
        """Call ``ready`` with a connection for ``client``, dialed if there is none; with None if dialing fails.

        Call ``ready`` with an error if the client is refused, since it closed its connections with errors. The
        connection stays open until ``claim`` and all other claims are released. ``is_apart``: the client shares the
        connection with no other.
        """
        error = self._blame.refusal(client)
        if error is not None:
            ready(None, error)
            return
        route = self._own_of(client) if is_apart or not self._shares else self._route_of(client)
        self._keep(route)
        claim.wait(self, route, client, ready)
        route.claims[claim] = None
        route.clients[client] += 1
        if self._is_crowded(route):
            self._with_room.pop(route, None)
        connection = route.connection
        if connection is None or not connection.endpoint.is_open or route.waiting:
            # In order: the control link of a filter set follows the link of the receiver.
            route.waiting[claim] = None
        else:
            claim.tell(connection)

    @property
    def _most_claims(self) -> int:
        return _MOST_SESSIONS_EACH if self._has_session_each else MOST_CLAIMS

    def _is_crowded(self, route: RouteConnection) -> bool:
        return len(route.clients) >= MOST_CLIENTS or len(route.claims) >= min(_CROWD_CLAIMS, self._most_claims)

    def _own_of(self, client: str) -> RouteConnection:
        return self._routes.get(client) or self._begin(client, is_shared=False)

    def _route_of(self, client: str) -> RouteConnection:
        """Return the shared connection of ``client`` that takes another claim, begun if there is none."""
        route = self._of_client.get(client)
        if route is not None and len(route.claims) < self._most_claims:
            return route
        route = self._of_client[client] = self._place(client)
        return route

    def _place(self, client: str) -> RouteConnection:
        part = self._blame.part_of(client)
        if part is not None:
            # The first claim of a part of the clients of a closed connection begins the part's connection.
            return self._routes.get(part.name) or self._begin(part.name)
        for route in self._with_room:
            return route
        route = self._begin(f"shared-{next(self._count)}")
        self._with_room[route] = None
        return route

    def _begin(self, name: str, *, is_shared: bool = True) -> RouteConnection:
        route = self._routes[name] = RouteConnection(name, is_shared=is_shared)
        self._commands.append(OpenConnector(self._connector(name)))
        return route

    def on_released(self, claim: RouteClaim, route: RouteConnection) -> None:
        if claim not in route.claims or self._routes.get(route.name) is not route:
            return
        del route.claims[claim]
        route.waiting.pop(claim, None)
        client = claim.client
        route.clients[client] -= 1
        if not route.clients[client]:
            del route.clients[client]
            if self._of_client.get(client) is route:
                del self._of_client[client]
        if route.is_shared and not self._is_crowded(route) and not self._blame.has(route.name):
            self._with_room[route] = None
        if route.claims:
            return
        if route.connection is None:
            self._drop(route)
            return
        route.linger = self._timers.after(_LINGER_S, lambda: self._drop(route))
        self._lingering[route] = None
        if len(self._lingering) > MAX_LINGERING:
            self._drop(next(iter(self._lingering)))

    def on_opened(self, connection: BrokerConnection, name: str) -> None:
        route = self._routes.get(name)
        if route is None or route.connection is not None:
            # A connection whose connector was dropped while the connection was being opened is closed.
            connection.endpoint.close()
            return
        route.connection = connection
        self._blame.on_opened(name)
        self._tell_some(route)

    def _tell_some(self, route: RouteConnection) -> None:
        connection = route.connection
        if connection is None or self._routes.get(route.name) is not route:
            return
        for claim in list(islice(route.waiting, _CLAIMS_AT_ONCE)):
            # A claim that was told before may have released this one.
            if claim in route.waiting:
                del route.waiting[claim]
                claim.tell(connection)
        if route.waiting:
            self._timers.after(_TURN_S, lambda: self._tell_some(route))

    def on_lost(self, connection: BrokerConnection | None, name: str, error: AmqpError | None = None) -> None:
        """Drop the connector ``name``, and tell the claims that wait that there is no connection.

        ``connection``: the connection that was lost, None if an attempt to dial it failed; ignored if the connector has
        another connection by now. A route that goes on makes a new claim, for another connection. ``error``: that with
        which a side closed the connection: one of its clients may have caused it.
        """
        route = self._routes.get(name)
        if route is None or route.connection is not connection:
            return
        self._drop(route)
        if error is not None and route.is_shared:
            self._blame.divide(name, list(route.clients), error)
        for claim in list(route.waiting):
            claim.tell(None)

    def _keep(self, route: RouteConnection) -> None:
        self._lingering.pop(route, None)
        if route.linger is not None:
            route.linger.cancel()
            route.linger = None

    def _drop(self, route: RouteConnection) -> None:
        self._keep(route)
        del self._routes[route.name]
        self._with_room.pop(route, None)
        for client in route.clients:
            if self._of_client.get(client) is route:
                del self._of_client[client]
        self._commands.append(DropConnector(self._connector(route.name).name))
