"""One listening port: admission of connections, their number, and refusal of connections over the limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

from wire.authentication import PeerTerms, Sasl
from wire.log import Emit
from wire.log_events import ConnectionClosed, ConnectionLost, ConnectionOpened, ConnectionRefused, ListenerOpened
from wire.node import ListenerSpec, Node, format_address
from wire.origin import ConnectionOwner, Origin
from wire.refuser import Refuser
from wire.sasl import SaslServer
from wire.transport.connection import SocketConnection
from wire.transport.os_errors import describe_os_error
from wire.transport.tls import PeerIdentity
from wire.transport.tls_session import TlsSession

BACKLOG = 4096
_MAX_REFUSALS = 64
_REFUSAL_TIMEOUT_S = 2.0


class BindError(Exception):
    """A listener cannot use its port; the text names listener, host, port and reason."""


@dataclass(frozen=True, slots=True)
class ListenerSnapshot:
    name: str
    host: str
    port: int
    connection_count: int
    refused_count: int


class SocketListener:
    """A listening port: admits connections, and refuses connections over the limit with an AMQP error.

    Always: at most ``max_connections`` connections; at most 64 more wait for a refusal and are counted apart.
    """

    def __init__(
        self, owner: ConnectionOwner[SocketConnection], node: Node, spec: ListenerSpec, container_id: str, log: Emit
    ) -> None:
        self._owner = owner
        self._node = node
        self._spec = spec
        self._log = log
        self._terms = _terms(spec)
        self._refuser = Refuser(container_id, f"this listener allows at most {spec.max_connections} connections")
        # Connections with the container id of the peer, None before the peer's OPEN.
        self._connections: dict[SocketConnection, str | None] = {}
        self._refusals: set[SocketConnection] = set()
        self._refused_count = 0
        self._port = spec.port
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """Listen; return the port, which the system chooses for port 0. Raises BindError."""
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
        self._log(ListenerOpened(spec.name, format_address(spec.host, self._port), spec.tls is not None))
        return self._port

    def close(self) -> None:
        """Accept no more connections; open connections stay."""
        if self._server is not None:
            self._server.close()

    # For connections (wire.origin.ConnectionMaker)
    def on_opened(self, connection: SocketConnection, container_id: str) -> None:
        if connection not in self._connections:
            return
        self._connections[connection] = container_id
        accepted = connection.accepted
        user, mechanism = (accepted.user, accepted.mechanism) if accepted is not None else (None, None)
        remote, tls = connection.remote_address, connection.is_encrypted
        self._log(ConnectionOpened(self._spec.name, remote, container_id, user, mechanism, tls))

    def on_gone(self, connection: SocketConnection, reason: str) -> None:
        name, remote = self._spec.name, connection.remote_address
        self._refusals.discard(connection)
        container_id = self._connections.pop(connection, None)
        if container_id is None:
            self._log(ConnectionRefused(name, remote, reason))
        elif connection.is_clean:
            self._log(ConnectionClosed(name, remote, container_id, reason))
        else:
            self._log(ConnectionLost(name, remote, container_id, reason))

    def snapshot(self) -> ListenerSnapshot:
        return ListenerSnapshot(
            self._spec.name, self._spec.host, self._port, len(self._connections), self._refused_count
        )

    def _make_connection(self) -> asyncio.BaseProtocol:
        spec = self._spec
        if len(self._connections) < spec.max_connections:
            origin = Origin(self._terms, spec.name, None, spec.mesh is not None, spec.handshake_timeout_s)
            connection = SocketConnection(self._owner, self, self._node, origin)
            self._connections[connection] = None
            return connection
        self._refused_count += 1
        if len(self._refusals) >= _MAX_REFUSALS:
            self._log(
                ConnectionRefused(
                    spec.name, "?", f"over {spec.max_connections} connections, and too many more wait for a refusal"
                )
            )
            return _Dropped()
        origin = Origin(self._terms, spec.name, None, False, min(spec.handshake_timeout_s, _REFUSAL_TIMEOUT_S))
        connection = SocketConnection(self._owner, self, self._refuser, origin)
        self._refusals.add(connection)
        return connection


class _Dropped(asyncio.Protocol):
    """Aborts a connection at once, without an AMQP error: too many others already wait for their refusal."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()


def _terms(spec: ListenerSpec) -> PeerTerms:
    context = spec.tls

    def make_sasl(identity: PeerIdentity | None) -> Sasl:
        return SaslServer(spec.sasl, identity.user if identity is not None else None)

    def refuse(identity: PeerIdentity | None) -> str | None:
        if spec.mesh is None or context is None:
            return None
        mesh = identity.mesh if identity is not None else None
        if identity is None or mesh is None or mesh.mesh != spec.mesh or not identity.is_node_or_operator:
            return f"certificate of {_who(identity)}, expected a node or operator of mesh {spec.mesh!r}"
        return None

    make_tls = None if context is None else lambda: TlsSession(context, server_side=True)
    return PeerTerms(make_tls, make_sasl, refuse)


def _who(identity: PeerIdentity | None) -> str:
    if identity is None:
        return "nobody"
    if identity.mesh is None:
        return repr(identity.user)
    return f"{identity.mesh.role} {identity.mesh.name!r} of mesh {identity.mesh.mesh!r}"
