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
    """A connection to a listener was over the limit, or ended before the peer's OPEN; `reason` says why, such as
    another protocol, a failed TLS handshake or login, or silence.
    """

    level: ClassVar[Level] = "warning"
    listener: str
    remote: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConnectorDown(LogEvent):
    """A connector lost its connection or could not connect, and dials again. A reason that repeats is logged once."""

    level: ClassVar[Level] = "warning"
    connector: str
    address: str
    reason: str
    retry_s: float


@dataclass(frozen=True, slots=True)
class ConnectionBug(LogEvent):
    """A bug in this node's code: an exception while serving one connection, which was dropped; all others go on."""

    level: ClassVar[Level] = "error"
    remote: str
    error: str
    traceback: str
