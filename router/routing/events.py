"""Log events about neighbors, uplinks, edge routers and paths.

The names of events and fields do not change, since people and tools search logs for them.

Sans-IO: the routing core returns most of these events among its actions, and the node writes the events to its log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log_event import Level, LogEvent


@dataclass(frozen=True, slots=True)
class NeighborUp(LogEvent):
    """This router and `router` hear each other over a connection, the first between the two that is up.

    Between interior routers the connection counts in paths from now on. An edge router logs this event for each uplink,
    and an interior router for each edge router, too; such a connection is in use only while the edge router has chosen
    it (`EdgeUp`).
    """

    router: str


@dataclass(frozen=True, slots=True)
class UplinkChosen(LogEvent):
    """This edge router now uses the uplink `router` (missing if no uplink is up).

    `before` is the uplink used until now, missing if there was none.
    """

    router: str | None
    before: str | None


@dataclass(frozen=True, slots=True)
class EdgeUp(LogEvent):
    """The edge router `router` uses this router as its active uplink from now on."""

    router: str


@dataclass(frozen=True, slots=True)
class EdgeDown(LogEvent):
    """The edge router `router` no longer uses this router as its active uplink: the connection was lost or closed."""

    router: str


@dataclass(frozen=True, slots=True)
class NeighborDown(LogEvent):
    """The last connection to the neighbor `router` ended; `reason` says why. Traffic takes other paths, if any."""

    level: ClassVar[Level] = "warning"
    router: str
    reason: str


@dataclass(frozen=True, slots=True)
class NeighborExpired(LogEvent):
    """Nothing came from a neighbor for `silent_s` seconds, so this router drops the connection.

    On a new connection, the reason is that HELLO was not heard in both directions within that time. `router` is missing
    if no HELLO has named the neighbor yet.
    """

    level: ClassVar[Level] = "warning"
    router: str | None
    silent_s: float


@dataclass(frozen=True, slots=True)
class PathChosen(LogEvent):
    """The cheapest path from this router to `router` is another than before: `path`, with the sum of its costs.

    `before` is the path until now; a router without a path has none.
    """

    level: ClassVar[Level] = "debug"
    router: str
    path: list[str] | None
    cost: int | None
    before: list[str] | None


@dataclass(frozen=True, slots=True)
class PathsChanged(LogEvent):
    """Routers came in reach (`reachable`) or went out of reach (`unreachable`). Changes of costs are not logged.

    At an edge router these are the active uplinks now and before.
    """

    reachable: list[str]
    unreachable: list[str]


@dataclass(frozen=True, slots=True)
class DuplicateRouterId(LogEvent):
    """Two routers use the id `router`: this router and another, or a neighbor and a third router.

    Give one of the two another name. A neighbor that restarts while its old connection still counts as up may cause
    the event, too, for some seconds. `instance` and `other_instance` tell the two routers apart.
    """

    level: ClassVar[Level] = "error"
    router: str
    instance: int
    other_instance: int


@dataclass(frozen=True, slots=True)
class RouterRestarted(LogEvent):
    """The interior router `router` has restarted, or has claimed its id again after another router used the id.

    This router drops the link state and addresses from before.
    """

    router: str
    instance: int


@dataclass(frozen=True, slots=True)
class ControlMessageRefused(LogEvent):
    """A neighbor sent a control message that this router cannot use; `reason` says what is wrong with the message.

    The connection is closed if the message is malformed or comes too early. Any other such message is ignored; of the
    ignored messages of a connection, only the first is logged.
    """

    level: ClassVar[Level] = "warning"
    reason: str
