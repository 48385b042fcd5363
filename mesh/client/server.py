"""The router or broker that the client library connects to: host, port, TLS and login."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from wire.node import ConnectorSpec
from wire.sasl import SaslClientSettings
from wire.transport.specs import format_address
from wire.transport.tls import MeshIdentity

CONNECTOR = "server"
"""The name of a client's only connection within its driver."""

REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""By the host of a listener on all addresses, the host at which clients on this machine reach the listener."""


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    tls: ssl.SSLContext | None = None
    sasl: SaslClientSettings | None = field(default_factory=SaslClientSettings)
    expected: MeshIdentity | None = None
    """The mesh, role and node name that the server's certificate must have; None: it must name the host."""
    warning: str | None = None
    """A warning for commands to show before the client connects; None for no warning."""
    fix: str | None = None
    """Advice for the user in the error if the server cannot be reached and the failure itself suggests no advice."""

    @property
    def address(self) -> str:
        return format_address(self.host, self.port)

    def connector(self) -> ConnectorSpec:
        return ConnectorSpec(CONNECTOR, self.host, self.port, self.tls, sasl=self.sasl, expected=self.expected)
