"""Debug events about link routes, of which a router makes none unless its log wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class RouteWaiting(LogEvent):
    """A client's link waits for the broker `broker`: there is no `path` there now, or the attach over `path` failed."""

    level: ClassVar[Level] = "debug"
    link: str
    address: str
    broker: str
    path: list[str] | None


@dataclass(frozen=True, slots=True)
class RoutePathLost(LogEvent):
    """The path of a client's link to the broker `broker` was lost; the router looks for another. `reason` says why."""

    level: ClassVar[Level] = "debug"
    link: str
    address: str
    broker: str
    reason: str


@dataclass(frozen=True, slots=True)
class RouteEstablished(LogEvent):
    """The broker `broker` answered the first attach of a client's link, which came to the broker over `path`."""

    level: ClassVar[Level] = "debug"
    link: str
    address: str
    broker: str
    path: list[str]
