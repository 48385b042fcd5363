"""Log events about neighbors, uplinks, edges and paths. The names are stable.

Sans-IO: the routing core returns most of these events among its actions, and the node writes the events to its log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log_event import Level, LogEvent


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
