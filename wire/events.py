"""Events from an endpoint to its node, except deliveries, dispositions and flows, which go to the sink directly."""

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
    """The peer closed, or the transport failed; ``error`` is the fault, if there is any. Comes once."""

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
    """The peer attaches: answer with ``accept_as_proposed``, termini and ``open``, or ``refuse``."""

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
    """The peer left, by a detach or with the session; ``closed`` when the terminus goes with the link. [2.6.4]

    The end of a session does not end a terminus that may outlive its link. The event also comes when the peer sent
    something over the link that cannot be kept (``link.fault``): the owner then closes the link with that error.
    """

    link: Link
    closed: bool
    error: AmqpError | None


Event = Opened | Closed | SessionBegun | SessionEnded | LinkAttached | LinkOverLimit | LinkEstablished | LinkDetached


class Sink(Protocol):
    """Receiver of the hot events during ``Endpoint.drain``. A compiled owner of a link takes the place of the sink."""

    def on_delivery(self, link: IncomingLink, delivery: Pointer) -> None:
        """Bytes, the end or the abort of a delivery arrived."""

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        """The peer gave a state or settled."""

    def on_flow(self, link: IncomingLink | OutgoingLink) -> None:
        """The peer's credit, drain or session window changed."""
