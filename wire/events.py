"""What an endpoint tells its node, apart from deliveries, dispositions and flow, which go to the sink directly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from wire.engine import Pointer
from wire.errors import AmqpError
from wire.link import IncomingLink, Link, OutgoingLink, Session


@dataclass(frozen=True, slots=True)
class Opened:
    """The peer's OPEN is here: ``endpoint.remote`` is set. [2.4.1]"""


@dataclass(frozen=True, slots=True)
class Closed:
    """The peer closed, or the transport failed; ``error`` says why when something is wrong. Comes once."""

    error: AmqpError | None


@dataclass(frozen=True, slots=True)
class SessionBegun:
    session: Session


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """After a LinkDetached for each of its links."""

    session: Session
    error: AmqpError | None


@dataclass(frozen=True, slots=True)
class LinkAttached:
    """The peer attaches: answer with ``accept_as_proposed``, termini and ``open``, or ``refuse``."""

    link: Link


@dataclass(frozen=True, slots=True)
class LinkOverLimit:
    """The peer attached one more than it may; it was refused with ``error``."""

    link: Link
    error: AmqpError


@dataclass(frozen=True, slots=True)
class LinkEstablished:
    """The peer answered our attach (with a null terminus when it is about to refuse). [2.6.3]"""

    link: Link


@dataclass(frozen=True, slots=True)
class LinkFaulted:
    """The peer sent over the link what cannot be, and we end the link with ``error``. A LinkDetached follows."""

    link: Link
    error: AmqpError


@dataclass(frozen=True, slots=True)
class LinkDetached:
    """The peer left, by a detach or with its session; ``closed`` when the terminus goes with the link. [2.6.4]

    The end of a session says nothing of termini: one that may outlive its link stays.
    """

    link: Link
    closed: bool
    error: AmqpError | None


Event = (
    Opened
    | Closed
    | SessionBegun
    | SessionEnded
    | LinkAttached
    | LinkOverLimit
    | LinkEstablished
    | LinkFaulted
    | LinkDetached
)


class Sink(Protocol):
    """Where the hot events go while ``Endpoint.drain`` runs. The compiled loop takes this place."""

    def on_delivery(self, link: IncomingLink, delivery: Pointer) -> None:
        """Bytes, the end or the abort of a delivery arrived."""

    def on_disposition(self, link: Link, delivery: Pointer) -> None:
        """The peer gave a state or settled."""

    def on_flow(self, link: IncomingLink | OutgoingLink) -> None:
        """The peer's credit, drain or session window changed."""
