"""Events that `Endpoint.drain` returns to the node, and `Sink`, which `drain` calls for deliveries and flows."""

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
    """The peer closed the connection or broke a rule, or the transport failed; ``error`` is the fault, if any.

    The event comes once for a connection.
    """

    error: AmqpError | None


@dataclass(frozen=True, slots=True)
class SessionBegun:
    session: Session


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The peer ended a session, or answered our end of the session.

    The event comes after a LinkDetached for each link of the session that we had not ended.
    """

    session: Session
    error: AmqpError | None


@dataclass(frozen=True, slots=True)
class LinkAttached:
    """The peer attached a link: the node answers by ``accept_as_proposed`` or ``refuse``, or sets termini and opens."""

    link: Link


@dataclass(frozen=True, slots=True)
class LinkOverLimit:
    """The peer attached more links than the connection may have; this link was refused with ``error``."""

    link: Link
    error: AmqpError


@dataclass(frozen=True, slots=True)
class LinkEstablished:
    """The peer answered our attach; with a null terminus, if the peer is about to refuse the link. [2.6.3]"""

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
    """Interface of the object that `Endpoint.drain` calls for the deliveries, dispositions and flows of links.

    Links with a compiled owner are left out: `drain` calls the owner.
    """

    def on_delivery(self, link: IncomingLink, delivery: Pointer) -> None:
        """Handle an incoming delivery of which bytes arrived, or the end, or an abort."""

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        """Handle a delivery that the peer gave a state, or settled."""

    def on_flow(self, link: IncomingLink | OutgoingLink) -> None:
        """Handle a flow of the peer on ``link``, which may change its credit or drain, or the session's window."""
