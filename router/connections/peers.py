"""The kinds of connections of a router, and the dispatch of AMQP events to the methods of a connection.

Every endpoint's ``owner`` is a `RouterConnection`; its ``on_event`` is called with each event that ``Endpoint.drain``
returned.
"""

from __future__ import annotations

from collections.abc import Callable

from addressing.address import DEFAULT_SPACE
from addressing.priority import DEFAULT_PRIORITY
from wire.endpoint import Endpoint
from wire.errors import AmqpError
from wire.events import Event, LinkAttached, LinkDetached, LinkEstablished, LinkOverLimit, Opened
from wire.link import Link, Session

LINKS_PER_SESSION = 64
"""Most links in a shared session. The engine searches linearly for a free handle: an attach takes 11 us with 64 links
in a session, 332 us with 20,000.
"""

ROLE = "amqpmesh.role"
INSTANCE = "amqpmesh.instance"
ROUTER_ROLE = "router"
EDGE_ROLE = "edge"


class RouterConnection:
    """The base class of all kinds of connections: passes each AMQP event to a method or to the owner of the link."""

    kind = "client"
    space = DEFAULT_SPACE
    """The space in which the peer names addresses, decided when the connection was accepted."""

    def __init__(self, endpoint: Endpoint, number: int) -> None:
        self.endpoint = endpoint
        self.number = number

    def on_event(self, event: Event) -> None:
        match event:
            # The attach of a link that ended in the same batch of events is ignored: no state of the link is left.
            case LinkAttached(link=link):
                if not link.is_gone:
                    self.on_attached(link)
            case LinkOverLimit(link=link, error=error):
                self.on_over_limit(link, error)
            case LinkDetached(link=link, closed=closed, error=error):
                self._on_detached(link, closed, error)
            case Opened():
                self.on_opened()
            case LinkEstablished(link=link):
                # The answer to this router's attach is ignored if this router has detached meanwhile: the link at the
                # other end of the relay is already gone.
                if link.owner is not None and not link.is_gone and not link.has_left:
                    link.owner.on_established(link)
            case _:
                pass

    def _on_detached(self, link: Link, closed: bool, error: AmqpError | None) -> None:
        if link.fault is not None and not link.is_gone and not link.has_left:
            self.on_link_faulted(link, link.fault)
        # The owner of a link that is gone is not told: the link's session ended in the same batch of events.
        if link.owner is not None and not link.is_gone:
            link.owner.on_left(closed, error)
        # The owner of a link answers the detach. If the link has no owner, or its owner did not answer, the answer is
        # sent here.
        if not link.has_left:
            link.close() if closed else link.detach()

    def on_opened(self) -> None:
        """Called when the peer's OPEN arrived: a subclass answers it or, if this router opened first, begins work."""

    def on_attached(self, link: Link) -> None:
        """Called when the peer attached ``link``: a subclass answers or refuses the attach."""

    def on_over_limit(self, link: Link, error: AmqpError) -> None:
        """Called, for the log, when the peer attached more links than allowed: ``link`` was refused with ``error``."""

    def on_link_faulted(self, link: Link, error: AmqpError) -> None:
        """Called, for the log, when the peer broke a rule of AMQP on ``link``, which ends with ``error``."""

    def on_lost(self, reason: str) -> None:
        """Called when the connection is gone.

        The owners of the connection's links are told before this call; those of a connection to a broker, after this
        call.
        """

    def describe(self) -> str:
        remote = self.endpoint.remote
        return f"{remote.container_id if remote else '?'} at {self.endpoint.peer.remote_address}"


class SessionPool:
    """The sessions that this router begins on one connection.

    Links that do not block each other share a session, up to 64 links in each. Links of different address priority
    never share a session, because all links of a session share its window.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._shared: dict[int, list[Session]] = {}

    def shared(self, priority: int = DEFAULT_PRIORITY) -> Session:
        """Return a shared session of this address priority with room for another link, begun if there is none.

        Raises ConnectionFault if the peer accepts no more sessions.
        """
        sessions = [session for session in self._shared.get(priority, ()) if not session.is_over]
        self._shared[priority] = sessions
        for session in sessions:
            if session.link_count < LINKS_PER_SESSION:
                return session
        sessions.append(self.endpoint.begin())
        return sessions[-1]

    def own(self) -> Session:
        """Return a new session for one link alone, which ends with the link: a stall there blocks no other link.

        Raises ConnectionFault if the peer accepts no more sessions.
        """
        session = self.endpoint.begin()
        session.ends_with_its_links = True
        return session


class ArrivingConnection(RouterConnection):
    """A connection to the port for routers and operators, whose peer's role is not known before its OPEN arrives."""

    kind = "arriving"

    def __init__(self, endpoint: Endpoint, number: int, on_arrived: Callable[[ArrivingConnection], None]) -> None:
        super().__init__(endpoint, number)
        self._on_arrived = on_arrived

    def on_opened(self) -> None:
        self._on_arrived(self)
