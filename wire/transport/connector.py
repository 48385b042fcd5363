"""Keeps one outgoing connection up: dials, dials again after a loss, with growing pauses, and logs the reasons.

The pause doubles with each attempt that ends in the same way, and begins anew after a connection that was up. A peer
that cannot be reached, or was lost, may be there again at any moment, so that pause stays short; a peer that refuses
the handshake will do so until somebody changes a configuration.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from wire.transport.connection import ConnectionTerms, SocketConnection
from wire.transport.io_context import IoContext
from wire.transport.log_events import ConnectorDown
from wire.transport.os_errors import describe_os_error
from wire.transport.protocol import ByteProtocol
from wire.transport.specs import DialSpec
from wire.transport.tls_session import TlsSession

# A connection that was open for this long counts as working: once it is lost, the next attempt comes at once.
_STABLE_S = 5.0


class _End(Enum):
    """End of an attempt to connect, or of the connection that the attempt made, by which the next pause is chosen."""

    ABSENT = auto()
    """Nobody could be reached: connection refused, no route, unknown host, no answer in time."""
    REFUSED = auto()
    """The connection ended before its protocol had accepted the peer."""
    LOST = auto()
    """The connection was up, and was lost soon afterwards."""
    LOST_STABLE = auto()
    """The connection was up for long enough to count as working, and was lost."""


@dataclass(frozen=True, slots=True)
class ConnectorSnapshot:
    name: str
    address: str
    is_up: bool
    down_reason: str | None
    attempt_count: int


class Connector:
    """Dials a peer, and dials again whenever the connection is lost, until stopped.

    ``on_failed`` is called with the reason when an attempt ends before its protocol (AMQP, say) has accepted the peer.

    Always: at most one connection at a time.
    """

    def __init__(
        self,
        io: IoContext,
        spec: DialSpec,
        make_protocol: Callable[[], ByteProtocol],
        on_failed: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self.spec = spec
        self._io = io
        self._make_protocol = make_protocol
        self._on_failed = on_failed
        self._terms = _terms(spec)
        self._connection: SocketConnection | None = None
        self._lost: asyncio.Future[str] | None = None
        self._opened_at: float | None = None
        self._told_reason: str | None = None
        self._attempt_count = 0
        self._was_connected = False
        self._pause_s = 0.0
        self._pauses_s: dict[_End, float] = {}
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"connector {spec.name}")

    def stop(self) -> None:
        """Stop dialing, and close the connection, if there is one, in order."""
        self.stop_dialing()
        if self._connection is not None:
            self._connection.protocol.close()

    def stop_dialing(self) -> None:
        """Stop dialing, but leave the connection, if there is one, as it is."""
        self._task.cancel()

    # Methods that the connector's connection calls (wire.transport.connection.ConnectionMaker)
    def on_established(self, connection: SocketConnection) -> None:
        self._opened_at = self._io.now()
        self._told_reason = None

    def on_gone(self, connection: SocketConnection, reason: str) -> None:
        self._connection = None
        if self._lost is None or self._lost.done() or self._task.cancelling():
            return
        if not connection.is_accepted:
            self._on_failed(reason)
        # The call of `on_failed` may have stopped the connector, so that nobody waits for the reason any more.
        if not self._lost.done():
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
            self._opened_at = None
            if reason != self._told_reason:
                self._told_reason = reason
                self._io.log(ConnectorDown(self.spec.name, self.spec.address, reason, round(self._pause_s, 1)))
            # The pause is random, so that the routers of a mesh do not dial a restarted router all at once.
            await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.0))

    async def _attempt(self) -> str:
        """Dial the peer once; return the reason once the attempt has failed, or the connection it made is lost."""
        self._lost = asyncio.get_running_loop().create_future()
        self._was_connected = False
        try:
            await self._dial()
        except (OSError, UnicodeError) as error:
            # If the connection was made, and lost in the same moment, the reason of that loss counts.
            if self._lost.done():
                return self._lost.result()
            # Dialing a host name with a label over 63 characters raises a UnicodeError. A TimeoutError is an OSError.
            reason = f"cannot connect: {describe_os_error(error)}"
            self._on_failed(reason)
            return reason
        return await self._lost

    async def _dial(self) -> None:
        spec = self.spec
        try:
            async with asyncio.timeout(spec.handshake_timeout_s):
                await asyncio.get_running_loop().create_connection(self._make_connection, spec.host, spec.port)
            self._was_connected = True
        except BaseException:
            # The time for dialing is up, or the connector was stopped. uvloop drops a connection made in that very
            # moment without a call of connection_lost, so the connection is reported as lost here.
            if self._connection is not None:
                self._connection.report_lost()
            raise

    def _settle_pause(self) -> None:
        end = self._end_of_attempt()
        if self._opened_at is not None:
            self._pauses_s = {_End.LOST: self._pauses_s.get(_End.LOST, 0.0)}
        if end is _End.LOST_STABLE:
            self._pauses_s[_End.LOST] = self._pause_s = 0.0
            return
        longest_s = self.spec.backoff_max_s if end is _End.REFUSED else self.spec.absent_backoff_max_s
        self._pause_s = min(max(2 * self._pauses_s.get(end, 0.0), self.spec.backoff_min_s), longest_s)
        self._pauses_s[end] = self._pause_s

    def _end_of_attempt(self) -> _End:
        if self._opened_at is None:
            return _End.REFUSED if self._was_connected else _End.ABSENT
        return _End.LOST_STABLE if self._io.now() - self._opened_at >= _STABLE_S else _End.LOST

    def _make_connection(self) -> SocketConnection:
        self._connection = SocketConnection(self._io, self, self._terms, self._make_protocol())
        return self._connection


def _terms(spec: DialSpec) -> ConnectionTerms:
    context = spec.tls
    host = spec.server_hostname or spec.host
    make_tls = None if context is None else lambda: TlsSession(context, server_side=False, server_hostname=host)
    return ConnectionTerms(make_tls, spec.handshake_timeout_s, is_dialed=True)
