"""What does a driver ask of a node, and what may a node ask of its driver? No I/O here, so nodes can import it.

A node is fed one input at a time, each with the time. After each the driver flushes ``node.dirty``, carries out
``commands`` and arms its timer for ``next_deadline``.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Protocol

from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, Peer
from wire.sasl import SaslClientSettings, SaslServerSettings
from wire.tls import MeshIdentity


@dataclass(frozen=True, slots=True)
class ListenerSpec:
    """Where to listen, and what is asked of who comes.

    ``mesh``: name of the mesh when this is the port for its nodes and operators: with TLS, only they get in.
    """

    name: str
    host: str
    port: int
    tls: ssl.SSLContext | None = None
    sasl: SaslServerSettings = field(default_factory=SaslServerSettings)
    mesh: str | None = None
    max_connections: int = 10_000
    handshake_timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """Whom to dial, for as long as the connector exists.

    ``expected``: who must be at the other end by its certificate.
    ``sasl`` None: no SASL layer at all, as between nodes, whom the certificate has named already.
    ``server_hostname``: name for TLS when it is not ``host``.
    """

    name: str
    host: str
    port: int
    tls: ssl.SSLContext | None = None
    sasl: SaslClientSettings | None = None
    server_hostname: str | None = None
    expected: MeshIdentity | None = None
    is_mesh: bool = False
    backoff_min_s: float = 0.1
    backoff_max_s: float = 5.0
    handshake_timeout_s: float = 10.0

    @property
    def address(self) -> str:
        return format_address(self.host, self.port)


@dataclass(frozen=True, slots=True)
class OpenConnector:
    """Dial, at once and again whenever the connection is lost."""

    spec: ConnectorSpec


@dataclass(frozen=True, slots=True)
class DropConnector:
    """Stop dialing; a connection that is up is closed in order."""

    name: str


@dataclass(frozen=True, slots=True)
class Abort:
    """Drop the connection now: nothing more comes from this endpoint but ``on_disconnected``.

    What its peer has not received by then it will not: nothing that is sent again elsewhere comes late from here.
    """

    endpoint: Endpoint
    reason: str = "dropped by the node"


Command = OpenConnector | DropConnector | Abort


class Node(Protocol):
    """Implemented by routers, brokers and clients."""

    dirty: DirtyEndpoints
    commands: list[Command]
    """What the driver is to do; it takes them out, the first one first."""

    def on_accepted(self, listener: str, peer: Peer, now: float) -> Endpoint:
        """A peer came in, and TLS and SASL are done: make its endpoint."""
        ...

    def on_connected(self, connector: str, peer: Peer, now: float) -> Endpoint:
        """A connector reached its peer, and TLS and SASL are done: make its endpoint."""
        ...

    def on_connect_failed(self, connector: str, reason: str, now: float) -> None:
        """An attempt failed before there was an endpoint; the next follows after the back-off."""
        ...

    def on_input(self, endpoint: Endpoint, now: float) -> None:
        """Bytes were fed, or time passed for the endpoint: drain it."""
        ...

    def on_writable(self, endpoint: Endpoint, now: float) -> None:
        """Its output was blocked, and is no more."""
        ...

    def on_disconnected(self, endpoint: Endpoint, reason: str, now: float) -> None:
        """The connection is gone; the endpoint is freed when this returns. Once for every endpoint."""
        ...

    def on_time(self, now: float) -> None: ...

    def next_deadline(self) -> float | None: ...


def format_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
