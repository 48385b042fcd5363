"""Ports to listen on and peers to dial, for any protocol. No I/O here, so that nodes can import the specifications."""

from __future__ import annotations

import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A port to listen on, and its limits.

    ``handshake_timeout_s``: time for TLS and the handshake of the protocol together, from the accept on.
    """

    name: str
    host: str
    port: int
    tls: ssl.SSLContext | None = None
    max_connections: int = 10_000
    handshake_timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class DialSpec:
    """A peer to dial, again after each loss.

    ``server_hostname``: name for TLS when it is not ``host``.
    ``backoff_min_s``, ``backoff_max_s``: bounds of the pause after a peer refused the handshake, which a configuration
    causes and time seldom mends. ``absent_backoff_max_s``: bound of the pause after a peer could not be reached, or was
    lost: the peer may be there again at any moment.
    ``handshake_timeout_s``: time for dialing, and again for TLS and the handshake of the protocol together.
    """

    name: str
    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_hostname: str | None = None
    backoff_min_s: float = 0.1
    backoff_max_s: float = 5.0
    absent_backoff_max_s: float = 1.0
    handshake_timeout_s: float = 10.0

    @property
    def address(self) -> str:
        return format_address(self.host, self.port)


def format_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
