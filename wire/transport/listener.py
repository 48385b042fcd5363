"""One listening port: accepts connections, counts them, and refuses connections over the port's limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from wire.transport.connection import ConnectionTerms, SocketConnection
from wire.transport.io_context import IoContext
from wire.transport.log_events import ConnectionRefused, ListenerOpened
from wire.transport.os_errors import describe_os_error
from wire.transport.protocol import ByteProtocol
from wire.transport.specs import PortSpec, format_address
from wire.transport.tls_session import TlsSession

BACKLOG = 4096
_MAX_REFUSALS = 64
_REFUSAL_TIMEOUT_S = 2.0


class BindError(Exception):
    """The error of a listener that cannot use its port; the text names listener, host, port and reason."""


@dataclass(frozen=True, slots=True)
class ListenerSnapshot:
    name: str
    host: str
    port: int
    connection_count: int
    refused_count: int


class SocketListener:
    """A listening port: admits connections, and refuses connections over the limit.

    ``make_protocol`` makes the protocol of a connection. ``make_refusal`` makes the protocol of a connection over the
    limit, which tells the peer why; without ``make_refusal``, such a connection is closed at once.

    Always: at most ``max_connections`` connections; at most 64 more wait for a refusal and are counted apart.
    """

    def __init__(
        self,
        io: IoContext,
        spec: PortSpec,
        make_protocol: Callable[[], ByteProtocol],
        make_refusal: Callable[[], ByteProtocol] | None = None,
    ) -> None:
        self._io = io
        self._spec = spec
        self._make_protocol = make_protocol
        self._make_refusal = make_refusal
        self._terms = _terms(spec, spec.handshake_timeout_s)
        self._refusal_terms = _terms(spec, min(spec.handshake_timeout_s, _REFUSAL_TIMEOUT_S))
        self._connections: set[SocketConnection] = set()
        self._refusals: set[SocketConnection] = set()
        self._refused_count = 0
        self._port = spec.port
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """Begin to accept connections; return the port, which the system chooses for port 0.

        Raises BindError if the port cannot be used.
        """
        spec = self._spec
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._make_connection, spec.host, spec.port, backlog=BACKLOG, reuse_address=True
            )
        except OSError as error:
            address = format_address(spec.host, spec.port)
            raise BindError(f"listener {spec.name} cannot use {address}: {describe_os_error(error)}") from None
        self._port = self._server.sockets[0].getsockname()[1]
        self._io.log(ListenerOpened(spec.name, format_address(spec.host, self._port), spec.tls is not None))
        return self._port

    def close(self) -> None:
        """Stop listening: no more connections are accepted; connections that were accepted stay."""
        if self._server is not None:
            self._server.close()

    # For connections (wire.transport.connection.ConnectionMaker)
    def on_established(self, connection: SocketConnection) -> None:
        """Do nothing: the protocol of an open connection logs the peer, whose name it knows."""

    def on_gone(self, connection: SocketConnection, reason: str) -> None:
        if connection in self._refusals or not connection.is_established:
            self._io.log(ConnectionRefused(self._spec.name, connection.remote_address, reason))
        self._refusals.discard(connection)
        self._connections.discard(connection)

    def snapshot(self) -> ListenerSnapshot:
        return ListenerSnapshot(
            self._spec.name, self._spec.host, self._port, len(self._connections), self._refused_count
        )

    def _make_connection(self) -> asyncio.BaseProtocol:
        if len(self._connections) < self._spec.max_connections:
            connection = SocketConnection(self._io, self, self._terms, self._make_protocol())
            self._connections.add(connection)
            return connection
        self._refused_count += 1
        if self._make_refusal is None or len(self._refusals) >= _MAX_REFUSALS:
            self._log_dropped()
            return _Dropped()
        connection = SocketConnection(self._io, self, self._refusal_terms, self._make_refusal())
        self._refusals.add(connection)
        return connection

    def _log_dropped(self) -> None:
        reason = f"over {self._spec.max_connections} connections"
        if self._make_refusal is not None:
            reason += ", and too many more wait for a refusal"
        self._io.log(ConnectionRefused(self._spec.name, "?", reason))


class _Dropped(asyncio.Protocol):
    """Aborts a new connection over the limit at once, without telling the peer why.

    The listener has no protocol that tells peers, or too many connections wait to be told already.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()


def _terms(spec: PortSpec, handshake_timeout_s: float) -> ConnectionTerms:
    context = spec.tls
    make_tls = None if context is None else lambda: TlsSession(context, server_side=True)
    return ConnectionTerms(make_tls, handshake_timeout_s, is_dialed=False)
