"""Log events of AMQP connections that opened or ended, and of a node's driver; others: `wire.transport.log_events`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class ConnectionOpened(LogEvent):
    """A client, node or operator connected to a listener of this node, and its OPEN arrived."""

    listener: str
    remote: str
    container_id: str
    user: str | None
    mechanism: str | None
    tls: bool


@dataclass(frozen=True, slots=True)
class ConnectionClosed(LogEvent):
    """An open connection to a listener ended after both sides had closed it, with an error or without; see `reason`."""

    listener: str
    remote: str
    container_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConnectionLost(LogEvent):
    """An open connection to a listener ended before both sides had closed it: lost, silent or aborted; see `reason`."""

    level: ClassVar[Level] = "warning"
    listener: str
    remote: str
    container_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConnectionForced(LogEvent):
    """The operator `operator` closed the connection with number `connection`; its `links` links ended with it."""

    connection: int
    client: str
    user: str | None
    links: int
    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class LinkForced(LogEvent):
    """The operator `operator` closed a client's link, which has number `number` on the connection `connection`."""

    connection: int
    number: int
    client: str
    user: str | None
    link: str
    address: str | None
    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConnectorUp(LogEvent):
    connector: str
    address: str
    container_id: str


@dataclass(frozen=True, slots=True)
class NodeBug(LogEvent):
    """A bug in this node's code: an exception outside of any connection was caught, and the node goes on."""

    level: ClassVar[Level] = "error"
    error: str
    traceback: str


@dataclass(frozen=True, slots=True)
class LoopTrouble(LogEvent):
    """The event loop met a problem outside of all connections, such as a process out of file descriptors."""

    level: ClassVar[Level] = "error"
    message: str
    error: str | None
