"""Who is at the other end of a router's connections, and what each kind may do.

Every endpoint's ``owner`` is one of these; ``on_event`` gets what ``Endpoint.drain`` returned.
"""

from __future__ import annotations

from collections.abc import Callable

from addressing.book import DEFAULT_PRIORITY
from wire.endpoint import Endpoint
from wire.errors import AmqpError
from wire.events import Event, LinkAttached, LinkDetached, LinkEstablished, LinkFaulted, LinkOverLimit, Opened
from wire.link import Link, Session

LINKS_PER_SESSION = 64
"""A free handle is searched for linearly: an attach takes 11 us with 64 links in a session, 332 with 20,000."""

ROLE = "amqpmesh.role"
INSTANCE = "amqpmesh.instance"
ROUTER_ROLE = "router"
EDGE_ROLE = "edge"


class RouterConnection:
    """A connection of any kind: turns events into calls."""

    kind = "client"

    def __init__(self, endpoint: Endpoint, number: int) -> None:
        self.endpoint = endpoint
        self.number = number
        endpoint.owner = self

    def on_event(self, event: Event) -> None:
        match event:
            case Opened():
                self.on_opened()
            # A link may have ended in the same batch of events, and then there is nothing left of it to look at.
            case LinkAttached(link=link):
                if not link.is_gone:
                    self.on_attached(link)
            case LinkOverLimit(link=link, error=error):
                self.on_over_limit(link, error)
            case LinkFaulted(link=link, error=error):
                self.on_link_faulted(link, error)
            case LinkEstablished(link=link):
                # The answer may cross our own detach, and the other end of a relay be gone by then.
                if link.owner is not None and not link.is_gone and not link.has_left:
                    link.owner.on_established(link)
            case LinkDetached(link=link, closed=closed, error=error):
                # Its session may have ended in the same batch of events.
                if link.owner is not None and not link.is_gone:
                    link.owner.on_left(closed, error)
                # Owners answer; a link that has none, or forgot to, is answered here.
                if not link.has_left:
                    link.close() if closed else link.detach()
            case _:
                pass

    def on_opened(self) -> None:
        """The peer's OPEN is here."""

    def on_attached(self, link: Link) -> None:
        """The peer attaches a link."""

    def on_over_limit(self, link: Link, error: AmqpError) -> None:
        """The peer attached more links than it may; this one was refused."""

    def on_link_faulted(self, link: Link, error: AmqpError) -> None:
        """The peer sent over the link what ends it; a LinkDetached follows."""

    def on_lost(self, reason: str) -> None:
        """The connection is gone, its links were told."""

    def describe(self) -> str:
        remote = self.endpoint.remote
        return f"{remote.container_id if remote else '?'} at {self.endpoint.peer.remote_address}"


class SessionPool:
    """Sessions of ours on one connection: links that do not block each other share one, up to 64 to each.

    Links of different priority never do: the window of a session belongs to all of its links.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._shared: dict[int, list[Session]] = {}

    def shared(self, priority: int = DEFAULT_PRIORITY) -> Session:
        """A session with room for another link. Raises ConnectionFault when the peer takes no more sessions."""
        sessions = [session for session in self._shared.get(priority, ()) if not session.is_over]
        self._shared[priority] = sessions
        for session in sessions:
            if session.link_count < LINKS_PER_SESSION:
                return session
        sessions.append(self._endpoint.begin())
        return sessions[-1]

    def own(self) -> Session:
        """A session for one link alone, ending with it: what stalls in it stalls nobody else."""
        session = self._endpoint.begin()
        session.ends_with_its_links = True
        return session


class ArrivingConnection(RouterConnection):
    """At the node port, before its OPEN says what it is."""

    kind = "arriving"

    def __init__(self, endpoint: Endpoint, number: int, on_arrived: Callable[[ArrivingConnection], None]) -> None:
        super().__init__(endpoint, number)
        self._on_arrived = on_arrived

    def on_opened(self) -> None:
        self._on_arrived(self)
