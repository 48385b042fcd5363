"""Actions that the routing core returns: work for the router's node to carry out, and changes for it to act on.

Log events (`router.routing.events`) are actions, too: the node writes each to its log, unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from wire.log_event import LogEvent


@dataclass(frozen=True, slots=True)
class SendControl:
    """Send a pre-settled control message on the control link of ``connection``.

    Several actions may share one ``body``, so the node does not change it.
    """

    connection: int
    opcode: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close ``connection`` with an error; the routing core has already forgotten the connection."""

    connection: int
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class DropConnection:
    """Close and abort ``connection`` without waiting for the peer, which is silent or uses another connection.

    The node gives up the connection's deliveries and circuits at once, so that they look for another path.
    """

    connection: int
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class TopologyChanged:
    """Paths may have changed, since a connection between routers came, went or changed its cost.

    ``unreachable`` and ``reachable`` name the routers that went out of reach and came in reach; both may be empty. At
    an edge router these are the active uplinks before and now.
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
    """Edge router ``edge`` began or ceased to take, or to ask for, each of the routing keys ``keys``.

    ``is_active`` is True when this router became the active uplink of ``edge``, False when this router ceased to be
    that, else None.
    """

    edge: str
    is_active: bool | None
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class ConfirmationRequest:
    """Router ``router`` asks for a confirmation: are the addresses that it advertises in effect at this router?

    ``version``, or a newer version, of the addresses is meant. ``is_edge``: the router is an edge router behind this
    one. An edge router is asked by its active uplink, whose ``version`` numbers the question.
    """

    router: str
    version: tuple[int, int]
    is_edge: bool = False


@dataclass(frozen=True, slots=True)
class LinkStateChanged:
    """This router's own link state changed. The node does nothing: the routing core itself floods the link state."""

    ls_seq: int
    peers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RouterForgotten:
    """The link state and addresses of ``router`` were deleted: it was out of reach for ``remote_ls_max_age_s``."""

    router: str


Action: TypeAlias = (
    SendControl
    | CloseConnection
    | DropConnection
    | TopologyChanged
    | AddressesChanged
    | EdgeChanged
    | ConfirmationRequest
    | LinkStateChanged
    | RouterForgotten
    | LogEvent
)
