"""Events about brokers, links, circuits and fallbacks that a router writes to its log.

The names of events and fields do not change, since people and tools search logs for them.

Events about neighbors and paths are in `router.routing.events`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class CostChanged(LogEvent):
    """An operator changed this router's cost of the connection to the router `neighbor` from `before` to `cost`."""

    neighbor: str
    cost: int
    before: int


@dataclass(frozen=True, slots=True)
class BrokerUp(LogEvent):
    """This router's base connection to the broker `broker` is open; `container_id` is what the broker calls itself.

    The base connection carries this router's own links; a client's link routes have connections of their own, whose
    opening and loss are not logged.
    """

    broker: str
    container_id: str


@dataclass(frozen=True, slots=True)
class BrokerDown(LogEvent):
    """This router lost its open base connection (`BrokerUp`) to the broker `broker`; `reason` says why."""

    level: ClassVar[Level] = "warning"
    broker: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrokerLinkRefused(LogEvent):
    """A client's link was refused: by the broker `broker`, or by this router, which is connected to that broker.

    The client's router refuses or ends the client's link with the same error. A lost path is not logged, since the
    client's router tries another. `address` is missing if the client named only a subscription.
    """

    level: ClassVar[Level] = "warning"
    broker: str
    client: str
    address: str | None
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class AttachRefused(LogEvent):
    """The router refused a client's attach; `condition` and `description` say why.

    An attach that goes on to a broker and is refused there is logged as `BrokerLinkRefused`.
    """

    level: ClassVar[Level] = "warning"
    client: str
    user: str | None
    link: str
    address: str | None
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class LinkEnded(LogEvent):
    """The router ended a client's link, since the client broke a rule of AMQP or left a message half sent for too long.

    `condition` and `description` say which.
    """

    level: ClassVar[Level] = "warning"
    client: str
    user: str | None
    link: str
    address: str | None
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class CircuitRefused(LogEvent):
    """A circuit or broker link that this router made for an address was refused, or ended with an error.

    The router tries again. `egress` names the other side: the egress of a circuit, the next router of a multicast
    branch, or the broker; `feed of` and the broker's name for the link from a fallback queue, the broker's name with
    `over` and the keeper's for the path to it. A lost path and a gone consumer of a dynamic address are not logged.
    """

    level: ClassVar[Level] = "warning"
    address: str
    egress: str
    condition: str
    description: str


@dataclass(frozen=True, slots=True)
class RouteReattached(LogEvent):
    """The path of a client's link to a broker was lost, and this router attached the link again over `path`.

    `path` may be the same as before. The path begins at this router and ends at the router that is connected to the
    broker.
    """

    link: str
    address: str
    broker: str
    path: list[str]


@dataclass(frozen=True, slots=True)
class FallbackBegan(LogEvent):
    """Deliveries that producers at this router send to `address` go to its fallback queue `queue` from now on."""

    address: str
    queue: str


@dataclass(frozen=True, slots=True)
class FallbackEnded(LogEvent):
    """Deliveries that producers at this router send to `address` go to its consumers again, no longer to `queue`."""

    address: str
    queue: str
