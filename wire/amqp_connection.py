"""One AMQP connection above TCP and TLS: SASL, then the endpoint, its time limits and its end. [2.4]

begin --> SASL --accepted--> endpoint --peer's OPEN--> established --is_finished, failure--> end
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Protocol

from wire.authentication import PeerAuthentication
from wire.endpoint import Endpoint, Peer
from wire.errors import AmqpError
from wire.log_event import Emit
from wire.log_events import ConnectionClosed, ConnectionLost, ConnectionOpened, ConnectorUp
from wire.node import Node
from wire.origin import Origin
from wire.sasl import PasswordCheck
from wire.transport.protocol import ByteProtocol

CLOSE_TIMEOUT_S = 5.0
FAILED_LOGIN_DELAY_S = 0.5
_MIN_TICK_S = 0.001
MOST_CHANGES = 16
"""Most begins, attaches, detaches and ends handled in one go: some milliseconds. The rest of a connection's input waits
while other connections have their turns.
"""
FEW_CHANGES = 2
"""The same for the first input of a connection while other connections wait: enough for a begin and an attach."""


class AmqpConnectionOwner(Protocol):
    """Interface of the driver, as the owner of connections: the methods that a connection calls."""

    log: Emit
    most_changes: int
    """How many begins, attaches, detaches and ends of a new input may be handled in one go now."""

    def on_made(self, connection: AmqpConnection) -> None: ...

    def on_ready(self, connection: AmqpConnection, peer: Peer) -> Endpoint | None: ...

    def on_input(self, connection: AmqpConnection) -> None: ...

    def on_rest(self, connection: AmqpConnection) -> None:
        """Call `AmqpConnection.go_on` later, after other connections: the endpoint keeps a rest of the input."""
        ...

    def on_writable(self, connection: AmqpConnection) -> None: ...

    def on_ended(self, connection: AmqpConnection, reason: str) -> None:
        """Tell the node that the connection has ended: no more AMQP is sent or read, even if its socket stays open."""
        ...

    def on_gone(self, connection: AmqpConnection, reason: str) -> None: ...

    def check_password(self, check: PasswordCheck, done: Callable[[bool], None]) -> None: ...

    def now(self) -> float: ...


class AmqpConnection(ByteProtocol):
    """AMQP over one TCP or TLS connection: logs the peer in, and feeds the endpoint, which belongs to the node.

    Always: ``endpoint`` is set from when the peer is accepted; ``is_open`` once the peer's OPEN has arrived.
    """

    __slots__ = ("_authentication", "_owner", "endpoint", "is_clean", "is_open", "node", "origin")

    def __init__(self, owner: AmqpConnectionOwner, node: Node, origin: Origin) -> None:
        self.node = node
        self.origin = origin
        self.endpoint: Endpoint | None = None
        self.is_clean = False
        self.is_open = False
        self._owner = owner
        self._authentication: PeerAuthentication

    # From the driver
    def flush(self) -> None:
        """Write the endpoint's output, as far as the socket takes bytes; end the connection of a finished endpoint.

        Do nothing before the peer is accepted, when there is no endpoint.
        """
        endpoint = self.endpoint
        if endpoint is None:
            return
        self.transport.write_from(endpoint)
        if not endpoint.is_calm:
            self._look_after(endpoint)

    def close(self, error: AmqpError | None = None) -> None:
        """Close the connection in order: send our close with ``error``, and wait for the peer's close.

        Do not wait if the peer has sent no OPEN. Without an endpoint, close the socket connection alone.
        """
        endpoint = self.endpoint
        if endpoint is None or not self.transport.is_active:
            self.transport.close()
            return
        endpoint.close(error)
        self.flush()
        if not self.is_open:
            # The engine writes no close to a peer that has sent no OPEN, so the connection ends without one.
            self.transport.end(f"closed by us: {error}" if error is not None else "closed by us")

    def log_end(self, reason: str) -> None:
        """Log the end of a listener's connection whose peer had sent OPEN; the listener logs the refusal of others."""
        listener, remote = self.origin.listener, self.endpoint.remote if self.endpoint is not None else None
        if listener is not None and remote is not None and self.is_open and not self.origin.is_refused:
            kind = ConnectionClosed if self.is_clean else ConnectionLost
            self._owner.log(kind(listener, self.transport.remote_address, remote.container_id, reason))

    def _look_after(self, endpoint: Endpoint) -> None:
        """Limit the time for the peer's close if our side is closed; end the connection if the endpoint is finished."""
        transport = self.transport
        if not transport.is_active:
            return
        if self.is_open and not transport.has_deadline and not endpoint.is_local_open:
            transport.set_deadline(CLOSE_TIMEOUT_S, self._on_close_timeout)
        if endpoint.is_finished and not transport.is_output_paused:
            ending = endpoint.ending
            self.is_clean = transport.reason is None and ending.is_clean
            transport.end(ending.reason)

    # Methods that the socket connection calls (wire.transport.protocol.ByteProtocol)
    @property
    def awaited(self) -> str:
        return self._authentication.describe_state() if self.endpoint is None else "open frame"

    def on_made(self) -> None:
        self._owner.on_made(self)

    def begin(self) -> None:
        self._authentication = PeerAuthentication(self.origin.terms, self.transport.identity)
        self._after_login(b"")

    def receive(self, data: bytes | memoryview) -> None:
        endpoint = self.endpoint
        if endpoint is None:
            self._after_login(self._authentication.receive(bytes(data)))
            return
        endpoint.receive(data, self._owner.most_changes)
        if endpoint.has_rest:
            self.transport.pause_reading()
            self._owner.on_rest(self)
        self._pass_on(endpoint)

    def go_on(self) -> None:
        """Handle more of the input that waits in the endpoint; read on once all of it is handled.

        The socket connection may be lost by now: what the peer sent before that is handled all the same.
        """
        endpoint = self.endpoint
        if endpoint is None:
            return
        endpoint.receive_rest(MOST_CHANGES)
        if endpoint.has_rest:
            self._owner.on_rest(self)
        else:
            self.transport.resume_reading()
        self._pass_on(endpoint)

    def _pass_on(self, endpoint: Endpoint) -> None:
        if endpoint.has_stopped_reading and endpoint.is_input_undecodable:
            self.transport.reason = "amqp:decode-error: the peer sent a frame that is not AMQP data"
            endpoint.close(AmqpError("amqp:decode-error", "a frame that is not AMQP data"))
        self._owner.on_input(self)
        if not self.is_open:
            self._after_input(endpoint)

    def receive_eof(self) -> None:
        endpoint = self.endpoint
        if endpoint is None or endpoint.is_finished:
            return
        while endpoint.has_rest:
            # Under TLS, the end may come with the bytes of the last read, and has to be judged behind them.
            endpoint.receive_rest(MOST_CHANGES)
            self._pass_on(endpoint)
        if endpoint.owes_close:
            # The peer closed the AMQP connection in order, and its last deliveries are still being passed on, so our
            # close, which ends the connection, comes later.
            return
        transport = self.transport
        reason = endpoint.receive_eof()
        transport.reason = transport.reason or reason
        self._owner.on_input(self)
        if transport.is_active:
            self.flush()
            transport.end(transport.reason or "")

    def pause_output(self) -> None:
        if self.endpoint is not None:
            self.endpoint.is_output_blocked = True

    def resume_output(self) -> None:
        if self.endpoint is None:
            return
        self.endpoint.is_output_blocked = False
        self.flush()
        if self.transport.is_active and not self.transport.is_output_paused:
            self._owner.on_writable(self)

    def on_timer(self) -> None:
        endpoint, transport = self.endpoint, self.transport
        if endpoint is None:
            return
        now = self._owner.now()
        deadline = endpoint.tick(now)
        if deadline is not None:
            transport.set_timer(max(deadline - now, _MIN_TICK_S))
        self._owner.on_input(self)
        if transport.is_output_paused and endpoint.has_failed:
            # The peer sends nothing and reads nothing, so our close frame would never be written: the connection is
            # aborted.
            transport.abort(endpoint.ending.reason)

    def on_fault(self, fault: Exception) -> bool:
        """Close the connection with ``fault`` and return True if it is an AmqpError, a fault of the peer. [2.8.16]

        Any other exception is a bug: send our close, as far as the socket takes bytes now, and return False. A router
        at the other end then knows that one of its clients may have caused the end of the connection.
        """
        if isinstance(fault, AmqpError):
            self.close(fault)
            return True
        if self.endpoint is not None and self.is_open:
            # The state of the endpoint is unknown, and the first exception is the one for the log.
            with contextlib.suppress(Exception):
                self.endpoint.close(AmqpError("amqp:internal-error", "a bug in this program, which its log describes"))
                self.transport.write_from(self.endpoint)
        return False

    def on_ended(self, reason: str) -> None:
        self._owner.on_ended(self, reason)

    def on_gone(self, reason: str) -> None:
        self._owner.on_gone(self, reason)

    # Login
    def _after_login(self, plain: bytes) -> None:
        authentication = self._authentication
        if authentication.failure is not None:
            delay_s = FAILED_LOGIN_DELAY_S if authentication.failure.is_credentials else 0.0
            self.transport.fail(authentication.failure.reason, authentication.output(), delay_s)
            return
        data = authentication.output()
        if authentication.accepted is not None:
            transport = self.transport
            peer = self.origin.peer(
                transport.identity, authentication.accepted, transport.remote_address, transport.tls
            )
            self.endpoint = self._owner.on_ready(self, peer)
            if self.endpoint is not None:
                # AMQP's header goes with the end of the login: a write of its own would cost as much as all of OPEN.
                data += self.endpoint.output()
        if data:
            self.transport.write(data)
        if self.endpoint is not None:
            self.transport.accept()
            self.receive(plain)
        elif authentication.password_check is not None:
            self._check_password(authentication.password_check)

    def _check_password(self, check: PasswordCheck) -> None:
        # Reading stops during the check of the password, since no one would take the input, which would fill memory
        # without bound.
        self.transport.pause_reading()
        self._owner.check_password(check, partial(self.transport.guard, self._on_checked))

    def _on_checked(self, is_right: bool) -> None:
        if self.transport.is_in_handshake:
            plain = self._authentication.on_password_checked(is_right)
            self.transport.resume_reading()
            self._after_login(plain)

    # Opening and end
    def _after_input(self, endpoint: Endpoint) -> None:
        remote = endpoint.remote
        if remote is None or self.is_open:
            return
        self.is_open = True
        self.transport.establish()
        self._log_open(remote.container_id)
        if self.transport.is_active:
            self.on_timer()

    def _log_open(self, container_id: str) -> None:
        origin, transport = self.origin, self.transport
        if origin.connector is not None:
            self._owner.log(ConnectorUp(origin.connector.name, origin.connector.address, container_id))
        elif not origin.is_refused:
            accepted = self._authentication.accepted
            user, mechanism = (accepted.user, accepted.mechanism) if accepted is not None else (None, None)
            remote, tls = transport.remote_address, transport.is_encrypted
            self._owner.log(ConnectionOpened(origin.listener or "", remote, container_id, user, mechanism, tls))

    def _on_close_timeout(self) -> None:
        if self.transport.is_active and self.endpoint is not None:
            why = self.endpoint.ending.reason
            self.transport.end(f"{why}, and the peer sent no close frame within {CLOSE_TIMEOUT_S:g} s")
