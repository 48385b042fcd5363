"""Actions and events that the routing core returns: work for the node to carry out, and facts for the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class SendControl:
    """Send a pre-settled control message on the control link of ``connection``; ``body`` is shared,
    do not change it.
    """

    connection: int
    opcode: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close ``connection`` with an error; routing has already forgotten the connection."""

    connection: int
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class DropConnection:
    """Drop ``connection`` without waiting for an answer: the peer is silent. Give its traffic up at once."""

    connection: int
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class NeighborUp:
    router: str
    connection: int


@dataclass(frozen=True, slots=True)
class NeighborDown:
    """The last connection to ``router``, namely ``connection``, is gone."""

    router: str
    connection: int
    reason: str


@dataclass(frozen=True, slots=True)
class TopologyChanged:
    """An edge or a cost changed, so paths may have changed. Both sets may be empty."""

    unreachable: frozenset[str]
    reachable: frozenset[str]


@dataclass(frozen=True, slots=True)
class AddressesChanged:
    router: str
    added: frozenset[str]
    removed: frozenset[str]


@dataclass(frozen=True, slots=True)
class EdgeChanged:
    """An edge router takes or asks for other ``keys`` than before.

    ``is_active`` is True when this router became the edge's active uplink, False when this router no longer is, else
    None.
    """

    edge: str
    is_active: bool | None
    keys: frozenset[str]


class RoutingEvent:
    """An event for the log; each subclass has a stable name."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class DuplicateRouterId(RoutingEvent):
    """Two routers use one router id. ``connection`` is None when the other router is not a neighbor."""

    router: str
    instance: int
    other_instance: int
    connection: int | None


@dataclass(frozen=True, slots=True)
class NeighborExpired(RoutingEvent):
    """A connection was silent too long. ``router`` is None when the peer on ``connection`` never became a neighbor."""

    router: str | None
    connection: int
    silent_s: float


@dataclass(frozen=True, slots=True)
class LinkStateChanged(RoutingEvent):
    """This router's own link state changed."""

    ls_seq: int
    peers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RouterRestarted(RoutingEvent):
    router: str
    instance: int


@dataclass(frozen=True, slots=True)
class RouterForgotten(RoutingEvent):
    router: str


@dataclass(frozen=True, slots=True)
class ControlMessageRefused(RoutingEvent):
    connection: int
    reason: str


@dataclass(frozen=True, slots=True)
class ControlMessageIgnored(RoutingEvent):
    """A newer router sent a message that this router does not know; reported once per connection."""

    connection: int
    reason: str


@dataclass(frozen=True, slots=True)
class UplinkChosen(RoutingEvent):
    """An edge router uses the uplink ``router`` now (None if no uplink is up) and used ``before`` until now."""

    router: str | None
    before: str | None


Action: TypeAlias = (
    SendControl
    | CloseConnection
    | DropConnection
    | NeighborUp
    | NeighborDown
    | TopologyChanged
    | AddressesChanged
    | EdgeChanged
    | RoutingEvent
)
