"""Events that `Endpoint.drain` returns to the node, and `Sink`, which gets deliveries, dispositions and flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from wire.engine import Pointer
from wire.errors import AmqpError
from wire.link import IncomingLink, Link, OutgoingLink, Session


@dataclass(frozen=True, slots=True)
class Opened:
    """The peer's OPEN has arrived: ``endpoint.remote`` is set. [2.4.1]"""


@dataclass(frozen=True, slots=True)
class Closed:
    """The peer closed the connection, or its transport failed; ``error`` is the fault, if any. Comes once."""

    error: AmqpError | None


@dataclass(frozen=True, slots=True)
class SessionBegun:
    session: Session


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """A session ended; comes after a LinkDetached for each link of the session."""

    session: Session
    error: AmqpError | None


@dataclass(frozen=True, slots=True)
class LinkAttached:
    """The peer attached a link: the node calls ``accept_as_proposed`` or ``refuse``, or sets termini and opens."""

    link: Link


@dataclass(frozen=True, slots=True)
class LinkOverLimit:
    """The peer attached one link more than allowed; the link was refused with ``error``."""

    link: Link
    error: AmqpError


@dataclass(frozen=True, slots=True)
class LinkEstablished:
    """The peer answered our attach (with a null terminus when it is about to refuse). [2.6.3]"""

    link: Link


@dataclass(frozen=True, slots=True)
class LinkDetached:
    """The peer ended a link, by a detach or with the session; ``closed``: its terminus ends with the link. [2.6.4]

    The end of a session does not end a terminus that may outlive its link. The event also comes when the peer sent
    a transfer that is not supported (``link.fault``): the owner then closes the link with that error.
    """

    link: Link
    closed: bool
    error: AmqpError | None


Event = Opened | Closed | SessionBegun | SessionEnded | LinkAttached | LinkOverLimit | LinkEstablished | LinkDetached


class Sink(Protocol):
    """Gets deliveries, dispositions and flows during ``Endpoint.drain``, of links without a compiled owner."""

    def on_delivery(self, link: IncomingLink, delivery: Pointer) -> None:
        """Bytes of an incoming delivery arrived, or its end, or its abort."""

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        """The peer gave a delivery a state, or settled the delivery."""

    def on_flow(self, link: IncomingLink | OutgoingLink) -> None:
        """The peer changed the link's credit or its drain, or the session's window."""
