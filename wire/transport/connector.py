"""Keeps one outgoing connection up: dials, dials again after a loss, with growing pauses, and logs the reasons."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from wire.authentication import PeerTerms
from wire.errors import AmqpError
from wire.log import Emit
from wire.log_events import ConnectorDown, ConnectorUp
from wire.node import ConnectorSpec, Node
from wire.origin import ConnectionOwner, Origin
from wire.sasl import SaslClient
from wire.transport.connection import SocketConnection
from wire.transport.os_errors import describe_os_error
from wire.transport.tls import PeerIdentity
from wire.transport.tls_session import TlsSession

# A connection that was open for this long counts as working: once it is lost, the next attempt comes at once.
_STABLE_S = 5.0


@dataclass(frozen=True, slots=True)
class ConnectorSnapshot:
    name: str
    address: str
    is_up: bool
    down_reason: str | None
    attempt_count: int


class Connector:
    """Dials a peer, and dials again whenever the connection is lost, until stopped.

    Always: at most one connection at a time.
    """

    def __init__(self, owner: ConnectionOwner[SocketConnection], node: Node, spec: ConnectorSpec, log: Emit) -> None:
        self.spec = spec
        self._owner = owner
        self._node = node
        self._log = log
        self._origin = Origin(_terms(spec), None, spec.name, spec.is_mesh, spec.handshake_timeout_s)
        self._connection: SocketConnection | None = None
        self._lost: asyncio.Future[str] | None = None
        self._opened_at: float | None = None
        self._told_reason: str | None = None
        self._attempt_count = 0
        self._pause_s = 0.0
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"connector {spec.name}")

    # For the driver
    def stop(self, error: AmqpError | None = None) -> None:
        """Stop dialing; close in order a connection that is up."""
        self.stop_dialing()
        if self._connection is not None:
            self._connection.close(error)

    def stop_dialing(self) -> None:
        """Stop dialing, but leave a connection that is up."""
        self._task.cancel()

    # For its connection (wire.origin.ConnectionMaker)
    def on_opened(self, connection: SocketConnection, container_id: str) -> None:
        self._opened_at = self._owner.now()
        self._told_reason = None
        self._log(ConnectorUp(self.spec.name, self.spec.address, container_id))

    def on_gone(self, connection: SocketConnection, reason: str) -> None:
        self._connection = None
        if self._lost is None or self._lost.done() or self._task.cancelling():
            return
        if connection.endpoint is None:
            self._owner.on_connect_failed(self.spec.name, reason)
        if not self._lost.done():  # done if the node stopped the connector meanwhile
            self._lost.set_result(reason)

    def snapshot(self) -> ConnectorSnapshot:
        is_up = self._opened_at is not None
        return ConnectorSnapshot(
            self.spec.name, self.spec.address, is_up, None if is_up else self._told_reason, self._attempt_count
        )

    async def _run(self) -> None:
        while True:
            self._attempt_count += 1
            reason = await self._attempt()
            self._settle_pause()
            if reason != self._told_reason:
                self._told_reason = reason
                self._log(ConnectorDown(self.spec.name, self.spec.address, reason, round(self._pause_s, 1)))
            # Jitter, so that the routers of a mesh do not dial a restarted router all at once.
            await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.0))

    async def _attempt(self) -> str:
        """Dial, and wait until the attempt fails or the connection is lost; return the reason of either."""
        spec = self.spec
        self._lost = asyncio.get_running_loop().create_future()
        try:
            await self._dial()
        except (OSError, UnicodeError) as error:
            if self._lost.done():
                return self._lost.result()  # The connection was made, and lost in the same moment.
            # A name with a label over 63 characters is a UnicodeError; a TimeoutError is an OSError.
            reason = f"cannot connect: {describe_os_error(error)}"
            self._owner.on_connect_failed(spec.name, reason)
            return reason
        return await self._lost

    async def _dial(self) -> None:
        spec = self.spec
        try:
            async with asyncio.timeout(spec.handshake_timeout_s):
                await asyncio.get_running_loop().create_connection(self._make_connection, spec.host, spec.port)
        except BaseException:
            # The time for dialing is up, or the connector was stopped. uvloop drops a connection made in that very
            # moment without a call of connection_lost, so treat the connection as lost here.
            if self._connection is not None:
                self._connection.forsake()
            raise

    def _settle_pause(self) -> None:
        lived_s = 0.0 if self._opened_at is None else self._owner.now() - self._opened_at
        self._opened_at = None
        if lived_s >= _STABLE_S:
            self._pause_s = 0.0
        else:
            self._pause_s = min(max(self._pause_s * 2, self.spec.backoff_min_s), self.spec.backoff_max_s)

    def _make_connection(self) -> SocketConnection:
        self._connection = SocketConnection(self._owner, self, self._node, self._origin)
        return self._connection


def _terms(spec: ConnectorSpec) -> PeerTerms:
    context = spec.tls
    host = spec.server_hostname or spec.host

    def refuse(identity: PeerIdentity | None) -> str | None:
        if spec.expected is None or context is None:
            return None
        found = identity.mesh if identity is not None else None
        if found == spec.expected:
            return None
        who = f"{found.role} {found.name!r} of mesh {found.mesh!r}" if found is not None else "no node of a mesh"
        wanted = spec.expected
        return f"the certificate is of {who}, expected {wanted.role} {wanted.name!r} of mesh {wanted.mesh!r}"

    def make_sasl(identity: PeerIdentity | None) -> SaslClient | None:
        return SaslClient(spec.sasl) if spec.sasl is not None else None

    make_tls = None if context is None else lambda: TlsSession(context, server_side=False, server_hostname=host)
    return PeerTerms(make_tls, make_sasl, refuse)
