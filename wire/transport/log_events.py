"""Log events of connections of any protocol: listeners, refusals, connectors without a connection, faults of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log_event import Level, LogEvent


@dataclass(frozen=True, slots=True)
class ListenerOpened(LogEvent):
    listener: str
    address: str
    tls: bool


@dataclass(frozen=True, slots=True)
class ConnectionRefused(LogEvent):
    """A connection was refused before it was open: another protocol, a wrong password, silence, too many."""

    level: ClassVar[Level] = "warning"
    listener: str
    remote: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConnectorDown(LogEvent):
    """A connector has no connection. Logged once for each reason, not for each attempt."""

    level: ClassVar[Level] = "warning"
    connector: str
    address: str
    reason: str
    retry_s: float


@dataclass(frozen=True, slots=True)
class ConnectionBug(LogEvent):
    """A fault of ours while serving one connection: the connection was dropped, all others go on."""

    level: ClassVar[Level] = "error"
    remote: str
    error: str
    traceback: str
