"""Connections to one broker for link routes: one for each client, kept as long as a route of the client claims it.

    no claim --first claim--> dialing --OPEN--> open --last claim released--> lingering --2 s--> dropped
                                 \\--last claim released, or the attempt failed-----------------/

A link route claims its client's connection before the route's first byte is sent, and releases the claim when the
route ends, in whatever state the connection is by then. If the last route ends while the connection is being dialed,
the attempt ends.
"""

from __future__ import annotations

from collections.abc import Callable

from router.connections.broker_connection import BrokerConnection
from router.timers import Timer, Timers
from wire.node import Command, ConnectorSpec, DropConnector, OpenConnector

_LINGER_S = 2.0
"""How long a connection without claims stays open, for a client that attaches one link after the other."""
MAX_LINGERING = 32
"""Most connections without claims to one broker; beyond, the oldest is dropped. Short-lived clients must not use up the
router's file descriptors.
"""
OnConnection = Callable[[BrokerConnection | None], None]


class RouteClaim:
    """One link route's claim on the connection of its client to a broker: a connection with claims stays open.

    The route makes the claim, and releases the claim when the route ends.
    """

    __slots__ = ("_owner", "_ready", "_shared")

    def __init__(self) -> None:
        self._owner: RouteConnections | None = None
        self._shared: SharedConnection | None = None
        self._ready: OnConnection | None = None

    def wait(self, owner: RouteConnections, shared: SharedConnection, ready: OnConnection) -> None:
        """Have `tell` call ``ready`` once, with the connection or None on failure, unless the claim was released."""
        self._owner, self._shared, self._ready = owner, shared, ready

    def tell(self, connection: BrokerConnection | None) -> None:
        ready, self._ready = self._ready, None
        if ready is not None:
            ready(connection)

    def release(self) -> None:
        """Give up the claim: `tell` calls nothing from now on.

        If it was the connection's last claim, an open connection ends after 2 s without a new claim, and a connection
        that is being dialed ends at once. Do nothing for a claim that was released before, or was never made.
        """
        owner, shared = self._owner, self._shared
        self._owner = self._shared = self._ready = None
        if owner is not None and shared is not None:
            owner.on_released(self, shared)


class SharedConnection:
    """The state of one client's connection for link routes to a broker, from the first claim on.

    ``connection`` is None until the broker's OPEN arrives. ``linger`` runs while the open connection has no claim.
    """

    __slots__ = ("claims", "client", "connection", "linger")

    def __init__(self, client: str) -> None:
        self.client = client
        self.connection: BrokerConnection | None = None
        self.claims: dict[RouteClaim, None] = {}
        self.linger: Timer | None = None


class RouteConnections:
    """The connections to one broker for link routes, at most one for each client.

    ``connector(client)`` makes the spec of a client's connector; commands for the driver go to ``commands``.

    Always: a connector exists for exactly the clients in ``_shared``. A connection in ``_lingering`` is open and has no
    claim; every other connection in ``_shared`` has claims.
    """

    def __init__(self, connector: Callable[[str], ConnectorSpec], timers: Timers, commands: list[Command]) -> None:
        self._connector = connector
        self._timers = timers
        self._commands = commands
        self._shared: dict[str, SharedConnection] = {}
        self._lingering: dict[SharedConnection, None] = {}

    def __len__(self) -> int:
        return len(self._shared)

    @property
    def clients(self) -> list[str]:
        """The clients that have a connection for link routes to the broker, or whose connection is being dialed."""
        return list(self._shared)

    @property
    def claim_count(self) -> int:
        return sum(len(shared.claims) for shared in self._shared.values())

    def claim(self, claim: RouteClaim, client: str, ready: OnConnection) -> None:
        """Call ``ready`` with the connection of ``client``, dialed if there is none; with None if dialing fails.

        The connection stays open until ``claim`` and all other claims are released.
        """
        shared = self._shared.get(client)
        if shared is None:
            shared = self._shared[client] = SharedConnection(client)
            self._commands.append(OpenConnector(self._connector(client)))
        self._keep(shared)
        claim.wait(self, shared, ready)
        shared.claims[claim] = None
        connection = shared.connection
        if connection is not None and connection.endpoint.is_open:
            claim.tell(connection)

    def on_released(self, claim: RouteClaim, shared: SharedConnection) -> None:
        shared.claims.pop(claim, None)
        if shared.claims or self._shared.get(shared.client) is not shared:
            return
        if shared.connection is None:
            self._drop(shared)
            return
        shared.linger = self._timers.after(_LINGER_S, lambda: self._drop(shared))
        self._lingering[shared] = None
        if len(self._lingering) > MAX_LINGERING:
            self._drop(next(iter(self._lingering)))

    def on_opened(self, connection: BrokerConnection, client: str) -> None:
        shared = self._shared.get(client)
        if shared is None or shared.connection is not None:
            # A connection whose connector was dropped while the connection was being opened is closed.
            connection.endpoint.close()
            return
        shared.connection = connection
        for claim in list(shared.claims):
            claim.tell(connection)

    def on_lost(self, connection: BrokerConnection | None, client: str) -> None:
        """Drop the connector of ``client``, and tell all claims that there is no connection.

        ``connection``: the connection that was lost, None if an attempt to dial it failed; ignored if the client has
        another connection by now. A route that goes on makes a new claim, for another connection.
        """
        shared = self._shared.get(client)
        if shared is None or shared.connection is not connection:
            return
        self._drop(shared)
        for claim in list(shared.claims):
            claim.tell(None)

    def _keep(self, shared: SharedConnection) -> None:
        self._lingering.pop(shared, None)
        if shared.linger is not None:
            shared.linger.cancel()
            shared.linger = None

    def _drop(self, shared: SharedConnection) -> None:
        self._keep(shared)
        del self._shared[shared.client]
        self._commands.append(DropConnector(self._connector(shared.client).name))
