"""Events that a router writes to its log. The names are stable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from router.routing import actions
from wire.log import Emit, Level, LogEvent


@dataclass(frozen=True, slots=True)
class NeighborUp(LogEvent):
    """Both routers hear each other; the connection to `router` counts in paths from now on."""

    router: str


@dataclass(frozen=True, slots=True)
class UplinkChosen(LogEvent):
    """An edge router uses the uplink `router` now (missing if no uplink is up) and used `before` until now."""

    router: str | None
    before: str | None


@dataclass(frozen=True, slots=True)
class EdgeUp(LogEvent):
    """An edge router uses this router as its active uplink."""

    router: str


@dataclass(frozen=True, slots=True)
class EdgeDown(LogEvent):
    """An edge router uses this router no longer as its active uplink."""

    router: str


@dataclass(frozen=True, slots=True)
class NeighborDown(LogEvent):
    """The last connection to a neighbor ended; `reason` says why. Traffic takes other paths."""

    level: ClassVar[Level] = "warning"
    router: str
    reason: str


@dataclass(frozen=True, slots=True)
class NeighborExpired(LogEvent):
    """Nothing came from a neighbor for `silent_s` seconds. The router drops that connection."""

    level: ClassVar[Level] = "warning"
    router: str | None
    silent_s: float


@dataclass(frozen=True, slots=True)
class PathsChanged(LogEvent):
    """Paths were computed again; the lists name the routers gained and the routers lost."""

    reachable: list[str]
    unreachable: list[str]


@dataclass(frozen=True, slots=True)
class DuplicateRouterId(LogEvent):
    """Another router has the id of this router. Give one of the two another name."""

    level: ClassVar[Level] = "error"
    router: str
    instance: int
    other_instance: int


@dataclass(frozen=True, slots=True)
class RouterRestarted(LogEvent):
    """A router of the mesh started anew; this router forgets the link state and addresses of its life before."""

    router: str
    instance: int


@dataclass(frozen=True, slots=True)
class ControlMessageRefused(LogEvent):
    """A neighbor sent a control message that this router cannot use; `reason` says what is wrong with it."""

    level: ClassVar[Level] = "warning"
    reason: str


def tell(action: actions.Action, emit: Emit) -> None:
    """Log an event that routing returned."""
    match action:
        case actions.NeighborUp(router):
            emit(NeighborUp(router))
        case actions.NeighborDown(router, _, reason):
            emit(NeighborDown(router, reason))
        case actions.NeighborExpired(router, _, silent_s):
            emit(NeighborExpired(router, round(silent_s, 3)))
        case actions.UplinkChosen(router, before):
            emit(UplinkChosen(router, before))
        case actions.DuplicateRouterId(router, instance, other):
            emit(DuplicateRouterId(router, instance, other))
        case actions.RouterRestarted(router, instance):
            emit(RouterRestarted(router, instance))
        case actions.ControlMessageRefused(_, reason) | actions.ControlMessageIgnored(_, reason):
            emit(ControlMessageRefused(reason))
        case _:
            pass


@dataclass(frozen=True, slots=True)
class BrokerUp(LogEvent):
    """This router is connected to a broker."""

    broker: str
    container_id: str


@dataclass(frozen=True, slots=True)
class BrokerDown(LogEvent):
    """This router lost its connection to a broker."""

    level: ClassVar[Level] = "warning"
    broker: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrokerLinkRefused(LogEvent):
    """A broker refused a client's routed link. `address` is missing if the client named only a subscription."""

    level: ClassVar[Level] = "warning"
    broker: str
    client: str
    address: str | None
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class AttachRefused(LogEvent):
    """The router refused a client's attach; `condition` and `description` say why."""

    level: ClassVar[Level] = "warning"
    client: str
    user: str | None
    link: str
    address: str | None
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class LinkEnded(LogEvent):
    """The router ended a client's link: the client broke a rule or left a message half sent; `condition` says which."""

    level: ClassVar[Level] = "warning"
    client: str
    user: str | None
    link: str
    address: str | None
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class CircuitRefused(LogEvent):
    """A circuit to the router `egress`, or a link to the broker of that name, was refused. The router tries again."""

    level: ClassVar[Level] = "warning"
    address: str
    egress: str
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class RouteReattached(LogEvent):
    """A client's link to a broker was attached again, possibly over another path."""

    link: str
    address: str
    broker: str
    path: list[str]


@dataclass(frozen=True, slots=True)
class FallbackBegan(LogEvent):
    """Deliveries that producers here send to the address now go to the fallback queue."""

    address: str
    queue: str


@dataclass(frozen=True, slots=True)
class FallbackEnded(LogEvent):
    """Deliveries to the address go to consumers again."""

    address: str
    queue: str
