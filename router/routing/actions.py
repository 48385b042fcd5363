"""What the routing core wants done, and what it wants known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class SendControl:
    """Send one pre-settled control message over the control link of ``connection``; ``body`` is shared: leave it be."""

    connection: int
    opcode: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close ``connection`` with an error; routing has forgotten it already."""

    connection: int
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class DropConnection:
    """Likewise, and wait for no answer: nobody is there. What goes over it is given up at once."""

    connection: int
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class NeighborUp:
    router: str
    connection: int


@dataclass(frozen=True, slots=True)
class NeighborDown:
    """The last connection to ``router``, which was ``connection``, is gone."""

    router: str
    connection: int
    reason: str


@dataclass(frozen=True, slots=True)
class TopologyChanged:
    """Some edge or cost changed, so paths may have; both sets may be empty."""

    unreachable: frozenset[str]
    reachable: frozenset[str]


@dataclass(frozen=True, slots=True)
class AddressesChanged:
    router: str
    added: frozenset[str]
    removed: frozenset[str]


@dataclass(frozen=True, slots=True)
class EdgeChanged:
    """Of these keys, what an edge router takes or asks for changed. ``is_active``: it came, or left; None: neither."""

    edge: str
    is_active: bool | None
    keys: frozenset[str]


class RoutingEvent:
    """For the log: each subclass is one event with a stable name."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class DuplicateRouterId(RoutingEvent):
    """Two routers use one id. ``connection`` is None when the other one is not a neighbor."""

    router: str
    instance: int
    other_instance: int
    connection: int | None


@dataclass(frozen=True, slots=True)
class NeighborExpired(RoutingEvent):
    """``router`` is None when the other side of ``connection`` never became a neighbor."""

    router: str | None
    connection: int
    silent_s: float


@dataclass(frozen=True, slots=True)
class LinkStateChanged(RoutingEvent):
    """This router's own link state."""

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
    """A newer router said something this one does not know; told once per connection."""

    connection: int
    reason: str


@dataclass(frozen=True, slots=True)
class UplinkChosen(RoutingEvent):
    """An edge router uses this one now, None if none is up, and used that one before."""

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
