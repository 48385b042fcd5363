"""One connection to a broker: the base connection of this router, or the connection of a client with link routes."""

from __future__ import annotations

from typing import Protocol

from router.connections.peers import RouterConnection, SessionPool
from wire.endpoint import Endpoint
from wire.link import Session

_SPARE_SESSIONS = 16
"""Sessions left for shared links: RabbitMQ accepts 64 sessions on a connection."""


class BrokerConnectionOwner(Protocol):
    """The broker as seen from this router, which hears when a connection opens and is lost."""

    def on_opened(self, connection: BrokerConnection) -> None: ...

    def on_lost(self, connection: BrokerConnection, reason: str) -> None: ...


class BrokerConnection(RouterConnection):
    """A connection to a broker. ``client`` is None for the base connection."""

    kind = "broker"

    def __init__(self, endpoint: Endpoint, number: int, site: BrokerConnectionOwner, client: str | None) -> None:
        super().__init__(endpoint, number)
        self.sessions = SessionPool(endpoint)
        self.client = client
        self.was_opened = False
        self._site = site

    def session_of_stream(self) -> Session:
        """Return a session for one stream, or a shared one if sessions run short. Raises ConnectionFault."""
        if self.endpoint.spare_session_count > _SPARE_SESSIONS:
            return self.sessions.own()
        return self.sessions.shared()

    def on_opened(self) -> None:
        self.was_opened = True
        self._site.on_opened(self)

    def on_lost(self, reason: str) -> None:
        self._site.on_lost(self, reason)
