"""The server that the client library connects to: host, port, TLS and login."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from wire.node import ConnectorSpec, format_address
from wire.sasl import SaslClientSettings
from wire.tls import MeshIdentity

CONNECTOR = "server"
"""The name of the connection within the driver."""


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    tls: ssl.SSLContext | None = None
    sasl: SaslClientSettings | None = field(default_factory=SaslClientSettings)
    expected: MeshIdentity | None = None
    """The mesh identity that the server's certificate must have; None: the certificate must name the host."""
    warning: str | None = None
    """A warning for the user before the client connects."""
    fix: str | None = None
    """The fix that an error names when the server cannot be reached."""

    @property
    def address(self) -> str:
        return format_address(self.host, self.port)

    def connector(self) -> ConnectorSpec:
        return ConnectorSpec(CONNECTOR, self.host, self.port, self.tls, self.sasl, expected=self.expected)
