"""Events about brokers, links, circuits and fallbacks that a router writes to its log. The names are stable.

Events about neighbors and paths are in `router.routing.events`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


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
