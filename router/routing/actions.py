"""Actions that the routing core returns: work for the node to carry out, and changes for the node to act on.

Log events (`router.routing.events`) are actions, too: the node writes each to its log, unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from wire.log_event import LogEvent


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
    """Close and abort ``connection`` without waiting for the peer, which is silent or uses another connection.

    Deliveries and circuits on the connection look for another path at once.
    """

    connection: int
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class TopologyChanged:
    """A connection between routers, or its cost, changed, so paths may have changed.

    The sets name the routers that went out of reach and came in reach; both may be empty.
    """

    unreachable: frozenset[str]
    reachable: frozenset[str]


@dataclass(frozen=True, slots=True)
class AddressesChanged:
    router: str
    added: frozenset[str]
    removed: frozenset[str]


@dataclass(frozen=True, slots=True)
class EdgeChanged:
    """An edge router began or ceased to take, or to ask for, each of ``keys``.

    ``is_active`` is True when this router became the edge's active uplink, False when this router no longer is, else
    None.
    """

    edge: str
    is_active: bool | None
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class LinkStateChanged:
    """This router's own link state changed. The node does nothing about it."""

    ls_seq: int
    peers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RouterForgotten:
    """``router`` was out of reach for ``remote_ls_max_age_s``: its link state and addresses are deleted here."""

    router: str


Action: TypeAlias = (
    SendControl
    | CloseConnection
    | DropConnection
    | TopologyChanged
    | AddressesChanged
    | EdgeChanged
    | LinkStateChanged
    | RouterForgotten
    | LogEvent
)
