"""One connection to a broker: the base connection of this router, or one for link routes of clients."""

from __future__ import annotations

from typing import Protocol

from router.connections.peers import RouterConnection, SessionPool
from wire.endpoint import Endpoint
from wire.link import Session

_SPARE_SESSIONS = 16
"""Sessions of a connection that streams leave free for shared links: RabbitMQ accepts only 64 sessions."""


class BrokerConnectionOwner(Protocol):
    """The owner of this router's connections to one broker, called when a connection opens and when one is lost."""

    def on_opened(self, connection: BrokerConnection) -> None: ...

    def on_lost(self, connection: BrokerConnection, reason: str) -> None: ...


class BrokerConnection(RouterConnection):
    """A connection to a broker.

    ``route``: the name of a connection for link routes (`router.connections.route_connections`); None for the base
    connection, which carries this router's own links.
    """

    kind = "broker"

    def __init__(self, endpoint: Endpoint, number: int, site: BrokerConnectionOwner, route: str | None) -> None:
        super().__init__(endpoint, number)
        self.sessions = SessionPool(endpoint)
        self.route = route
        self.was_opened = False
        self._site = site

    def session_of_stream(self) -> Session:
        """Return a session for one stream (a link for large deliveries), or a shared one if sessions run short.

        Raises ConnectionFault if the broker accepts no more sessions.
        """
        if self.endpoint.spare_session_count > _SPARE_SESSIONS:
            return self.sessions.own()
        return self.sessions.shared()

    def on_opened(self) -> None:
        self.was_opened = True
        self._site.on_opened(self)

    def on_lost(self, reason: str) -> None:
        self._site.on_lost(self, reason)
