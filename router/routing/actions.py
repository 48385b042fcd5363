"""Actions that the routing core returns: work for the node to carry out, and facts.

Facts for the log are events of `router.routing.events`: the node writes them as they are.
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
    """Drop ``connection`` without waiting for an answer: the peer is silent. Give its traffic up at once."""

    connection: int
    condition: str
    description: str


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


@dataclass(frozen=True, slots=True)
class LinkStateChanged:
    """This router's own link state changed."""

    ls_seq: int
    peers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RouterForgotten:
    """Nothing spread the link state of ``router`` any more, so this router has deleted it."""

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
