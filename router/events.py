"""What a router writes to its log. Names are stable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from router.routing import actions
from wire.log import Emit, Level, LogEvent


@dataclass(frozen=True, slots=True)
class NeighborUp(LogEvent):
    router: str


@dataclass(frozen=True, slots=True)
class UplinkChosen(LogEvent):
    """An edge router goes this way now, None for no way at all, and went that way before."""

    router: str | None
    before: str | None


@dataclass(frozen=True, slots=True)
class EdgeUp(LogEvent):
    """An edge router has this router for its active uplink."""

    router: str


@dataclass(frozen=True, slots=True)
class EdgeDown(LogEvent):
    router: str


@dataclass(frozen=True, slots=True)
class NeighborDown(LogEvent):
    level: ClassVar[Level] = "warning"
    router: str
    reason: str


@dataclass(frozen=True, slots=True)
class NeighborExpired(LogEvent):
    level: ClassVar[Level] = "warning"
    router: str | None
    silent_s: float


@dataclass(frozen=True, slots=True)
class PathsChanged(LogEvent):
    reachable: list[str]
    unreachable: list[str]


@dataclass(frozen=True, slots=True)
class DuplicateRouterId(LogEvent):
    level: ClassVar[Level] = "error"
    router: str
    instance: int
    other_instance: int


@dataclass(frozen=True, slots=True)
class RouterRestarted(LogEvent):
    router: str
    instance: int


@dataclass(frozen=True, slots=True)
class ControlMessageRefused(LogEvent):
    level: ClassVar[Level] = "warning"
    reason: str


def tell(action: actions.Action, emit: Emit) -> None:
    """Log what routing reports."""
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
    broker: str
    container_id: str


@dataclass(frozen=True, slots=True)
class BrokerDown(LogEvent):
    level: ClassVar[Level] = "warning"
    broker: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrokerLinkRefused(LogEvent):
    """A broker refused the link of a client's that was routed to it. Who ends a subscription by name has no address."""

    level: ClassVar[Level] = "warning"
    broker: str
    client: str
    address: str | None
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class AttachRefused(LogEvent):
    """A client asked for a link that it cannot have."""

    level: ClassVar[Level] = "warning"
    client: str
    user: str | None
    link: str
    address: str | None
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class LinkEnded(LogEvent):
    """The router ended a link, since its client broke a rule or left a message half sent; `condition` says which."""

    level: ClassVar[Level] = "warning"
    client: str
    user: str | None
    link: str
    address: str | None
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class CircuitRefused(LogEvent):
    level: ClassVar[Level] = "warning"
    address: str
    egress: str
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class RouteReattached(LogEvent):
    """A client's link to a broker goes on over another path."""

    link: str
    address: str
    broker: str
    path: list[str]


@dataclass(frozen=True, slots=True)
class FallbackBegan(LogEvent):
    """What producers here send to the address goes to the queue."""

    address: str
    queue: str


@dataclass(frozen=True, slots=True)
class FallbackEnded(LogEvent):
    """It goes to consumers again."""

    address: str
    queue: str
