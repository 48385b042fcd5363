"""One TCP connection from first to last byte: TLS, the login and the bytes of a protocol, output, orderly end.

    NEW --> TLS --> LOGIN --accept--> ACTIVE --end, fail--> LINGER --> gone
             \\--------failure, silence---------------------/

Lingering: after the last byte we close our half and discard further input, because closing a socket with unread input
resets the connection, and the peer would lose the very error that explains the fault.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, Protocol, cast

from wire.transport.io_context import IoContext
from wire.transport.log_events import ConnectionBug
from wire.transport.os_errors import describe_os_error
from wire.transport.protocol import NO_PROTOCOL, ByteProtocol, OutputSource
from wire.transport.socket_tuning import forget_unsent, tune
from wire.transport.specs import format_address
from wire.transport.tls import PeerIdentity, TlsAgreement
from wire.transport.tls_session import TlsFault, TlsSession

LINGER_S = 2.0


class ConnectionPhase(Enum):
    NEW = auto()
    TLS = auto()
    LOGIN = auto()
    ACTIVE = auto()
    LINGER = auto()
    GONE = auto()


_HANDSHAKE = (ConnectionPhase.TLS, ConnectionPhase.LOGIN)
_BEFORE_ACTIVE = (ConnectionPhase.NEW, *_HANDSHAKE)


@dataclass(frozen=True, slots=True)
class ConnectionTerms:
    """Terms of all connections of a listener or connector. ``make_tls`` is None for connections without TLS."""

    make_tls: Callable[[], TlsSession] | None
    handshake_timeout_s: float
    is_dialed: bool


class ConnectionMaker(Protocol):
    """Interface of the listener or connector that made a connection: the methods that the connection calls."""

    def on_established(self, connection: SocketConnection) -> None: ...

    def on_gone(self, connection: SocketConnection, reason: str) -> None: ...


class SocketConnection(asyncio.BufferedProtocol):
    """One TCP connection: passes bytes between socket, TLS and protocol.

    Always: ``is_active`` is true in phase ACTIVE only; the protocol's ``on_gone`` is called exactly once, and last.

    Input is read into one buffer for all connections (``IoContext.input_buffer``) and taken out at once. Output without
    TLS is written from the protocol's own buffer straight to the socket; asyncio's buffer only gets bytes that the
    socket did not take.
    """

    __slots__ = (
        "_deadline", "_does_input_wait", "_has_ended", "_has_peer_ended", "_io", "_loop", "_maker", "_phase", "_socket",
        "_terms", "_timer", "_tls", "_tls_fault", "_transport", "identity", "is_accepted", "is_active",
        "is_established", "is_output_paused", "protocol", "reason", "remote_address", "tls",
    )  # fmt: skip

    def __init__(self, io: IoContext, maker: ConnectionMaker, terms: ConnectionTerms, protocol: ByteProtocol) -> None:
        self.remote_address = "?"
        self.identity: PeerIdentity | None = None
        self.tls: TlsAgreement | None = None
        self.reason: str | None = None
        self.is_accepted = False
        self.is_active = False
        self.is_established = False
        self.is_output_paused = False
        self.protocol = protocol
        self._io = io
        self._maker = maker
        self._terms = terms
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._phase = ConnectionPhase.NEW
        self._tls: TlsSession | None = None
        self._tls_fault: str | None = None
        self._has_peer_ended = False
        self._has_ended = False
        self._does_input_wait = False
        self._deadline: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        protocol.transport = self

    # From asyncio
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The type is not checked at run time, since uvloop's transports are not instances of asyncio's classes.
        self._transport = cast(asyncio.Transport, transport)
        self.remote_address = _remote_address(self._transport)
        self.guard(self.protocol.on_made)
        if self._terms.is_dialed:
            self.guard(self._start)
        else:
            self._io.handshakes.run(partial(self.guard, self._start))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._io.input_buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = self._io.input_buffer[:nbytes]
        if self.is_active and self._tls is None:
            try:
                self.protocol.receive(data)
            except Exception as fault:  # noqa: BLE001 (as in guard, which would cost a call for each read)
                self.on_fault(fault)
        elif self.is_active:
            self.guard(self._on_data, bytes(data))
        elif self._phase in _BEFORE_ACTIVE and not self._io.handshakes.run(
            partial(self._on_handshake_input, bytes(data))
        ):
            self._does_input_wait = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self.guard(self._on_eof)
        # If the peer ended its half of the connection, True keeps the socket open for our output. A lingering
        # connection has no output left, so False lets asyncio close the socket.
        return self.is_active

    def pause_writing(self) -> None:
        self.is_output_paused = True
        self.guard(self.protocol.pause_output)

    def resume_writing(self) -> None:
        self.is_output_paused = False
        if self.is_active:
            self.guard(self.protocol.resume_output)

    def connection_lost(self, error: Exception | None) -> None:
        if self._phase is ConnectionPhase.GONE:
            return
        if self.reason is None:
            self.reason = _why_lost(error, self._awaited() if self._phase in _HANDSHAKE else None)
        self._enter(ConnectionPhase.GONE)
        self._cancel_timers()
        protocol, self.protocol = self.protocol, NO_PROTOCOL
        self.guard(protocol.on_gone, self.reason)
        self._maker.on_gone(self, self.reason)

    # Methods that the protocol (see wire.transport.protocol.ByteTransport), the listener and the connector call
    @property
    def is_encrypted(self) -> bool:
        return self._terms.make_tls is not None

    @property
    def is_in_handshake(self) -> bool:
        return self._phase in _HANDSHAKE

    @property
    def has_deadline(self) -> bool:
        return self._deadline is not None

    def guard(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            call(*arguments)
        except Exception as fault:  # noqa: BLE001 (the one place for connections, see style)
            self.on_fault(fault)

    def on_fault(self, fault: Exception) -> None:
        if self.protocol.on_fault(fault):
            return
        self._io.log(ConnectionBug(self.remote_address, repr(fault), "".join(traceback.format_exception(fault))))
        self.abort(f"internal error: {fault!r}")

    def accept(self) -> None:
        self.is_accepted = True
        if self._phase is not ConnectionPhase.LOGIN:
            return
        self._enter(ConnectionPhase.ACTIVE)
        if self._tls is not None and self._tls.has_ended:
            self._loop.call_soon(self.guard, self._on_eof)

    def establish(self) -> None:
        self.accept()
        self.is_established = True
        self._maker.on_established(self)
        if self.is_active:
            self._disarm_deadline()

    def write(self, data: bytes) -> None:
        if self._tls is not None:
            self._encrypt(self._tls, data)
            self._write_tls_output()
        elif not self._transport.is_closing():
            self._transport.write(data)

    def write_from(self, source: OutputSource) -> None:
        if self.is_output_paused or not self.is_active:
            return
        if self._tls is not None:
            while not self.is_output_paused and (data := source.output()):
                self.write(data)
            return
        if self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size():
            # Bytes of the handshake still wait in asyncio's buffer, and have to go first; asyncio calls resume_writing
            # once these bytes are written.
            return
        try:
            while rest := source.send_to(self._socket):
                self._transport.write(rest)
                if self.is_output_paused or self._transport.is_closing():
                    return
                # The socket had room again, and took the rest at once. No call of resume_writing follows, so the next
                # round of this loop writes more.
        except OSError as error:
            while source.output():
                pass
            # The connection is aborted with the socket's error as the reason, unless the peer closed before: then the
            # reason in the peer's close is the better one for the log.
            if not source.is_finished:
                self.abort(describe_os_error(error))

    def set_timer(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, self._on_timer)

    def set_deadline(self, delay_s: float, call: Callable[[], None]) -> None:
        self._disarm_deadline()
        self._deadline = self._loop.call_later(delay_s, self.guard, call)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def end(self, reason: str) -> None:
        self._enter(ConnectionPhase.LINGER)
        self.reason = self.reason or reason
        if self._has_ended or self._transport.is_closing():
            return
        self._has_ended = True
        # The protocol hears of the end in the next turn of the event loop only: the caller may look at the protocol's
        # state once more before the protocol frees that state.
        self._loop.call_soon(self.guard, self.protocol.on_ended, self.reason)
        self._cancel_timers()
        self.set_deadline(LINGER_S, self._transport.abort)
        if self._tls is not None:
            self._tls.close()
            self._write_tls_output()
        if self._has_peer_ended:
            self._transport.close()
        else:
            self._close_our_half()

    def fail(self, reason: str, last: bytes = b"", delay_s: float = 0.0) -> None:
        self.reason = reason
        self._enter(ConnectionPhase.LINGER)
        self.set_deadline(delay_s, lambda: self._end_failed(last))

    def close(self, reason: str = "closed by us") -> None:
        # In the handshake of a connection that we dialed, nothing of ours is on its way that the peer would lose: the
        # connection is aborted, without an orderly end.
        if self._phase is ConnectionPhase.NEW or (self._phase in _HANDSHAKE and self._terms.is_dialed):
            self.abort(reason)
        elif self.is_active or self._phase in _HANDSHAKE:
            self.end(reason)

    def abort(self, reason: str) -> None:
        if self._phase is ConnectionPhase.GONE:
            return
        self.reason = self.reason or reason
        # A connection that has not started may have no socket yet: `_start` closes the socket.
        has_started = self._phase is not ConnectionPhase.NEW
        self._enter(ConnectionPhase.LINGER)
        if has_started:
            self._transport.abort()

    def reset(self, reason: str) -> None:
        if not self._transport.is_closing():
            forget_unsent(self._transport)
        self.abort(reason)

    def report_lost(self) -> None:
        """End a connection that was made just as its dialing was given up, as if asyncio had reported it as lost.

        uvloop may never report that.
        """
        if self._phase is not ConnectionPhase.NEW:
            self.connection_lost(None)

    # Input
    def _enter(self, phase: ConnectionPhase) -> None:
        self._phase = phase
        self.is_active = phase is ConnectionPhase.ACTIVE

    def _start(self) -> None:
        """Begin the handshake; if the connection was aborted before, close its socket."""
        if self._transport.is_closing():
            return
        if self._phase is ConnectionPhase.NEW:
            self._enter(ConnectionPhase.TLS)
            self._socket = tune(self._transport)
            self.set_deadline(self._terms.handshake_timeout_s, self._on_handshake_timeout)
            self._begin()
        else:
            self._transport.abort()

    def _begin(self) -> None:
        if self._terms.make_tls is None:
            self._log_in()
        else:
            self._tls = self._terms.make_tls()
            self._write_tls_output()

    def _log_in(self) -> None:
        self._enter(ConnectionPhase.LOGIN)
        self.protocol.begin()

    def _on_handshake_input(self, data: bytes) -> None:
        """Handle input of the handshake, in the turn that `HandshakeSlices` gave; read on if the input had to wait."""
        if self._does_input_wait:
            self._does_input_wait = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        if self.is_active or self._phase in _HANDSHAKE:
            self.guard(self._on_data, data)

    def _on_data(self, data: bytes) -> None:
        tls = self._tls
        if tls is None:
            self.protocol.receive(data)
        else:
            self._on_cipher_text(tls, data)

    def _on_cipher_text(self, tls: TlsSession, data: bytes) -> None:
        try:
            plain = tls.receive(data) if self._tls_fault is None else b""
        except TlsFault as fault:
            self._tls_fault = str(fault)
        if self._tls_fault is not None:
            self.fail(self._tls_fault)
            return
        if self._phase is ConnectionPhase.TLS and tls.is_ready:
            self.identity, self.tls = tls.peer, tls.agreement
            self._log_in()
        if plain and (self.is_active or self._phase is ConnectionPhase.LOGIN):
            self.protocol.receive(plain)
        if self.is_active or self._phase in _HANDSHAKE:
            self._write_tls_output()
        if tls.has_ended and self.is_active:
            self._on_eof()

    def _on_eof(self) -> None:
        if self._has_peer_ended:
            return
        self._has_peer_ended = True
        if self.is_active:
            self.protocol.receive_eof()

    def _awaited(self) -> str:
        return "TLS handshake" if self._phase is ConnectionPhase.TLS else self.protocol.awaited

    def _on_timer(self) -> None:
        if self.is_active:
            self.guard(self.protocol.on_timer)

    def _on_handshake_timeout(self) -> None:
        if not self.is_active and self._phase not in _HANDSHAKE:
            return
        reason = f"no {self._awaited()} within {self._terms.handshake_timeout_s:g} s"
        if self.is_active:
            self.end(reason)
        else:
            self.fail(reason)

    # Output
    def _encrypt(self, tls: TlsSession, data: bytes) -> None:
        try:
            tls.send(data)
        except TlsFault as fault:
            # Broken TLS sends nothing more, so the failure is only noted: the end comes from the peer, or from a time
            # limit.
            self._tls_fault = self._tls_fault or str(fault)

    def _write_tls_output(self) -> None:
        if self._tls is not None and (data := self._tls.output()) and not self._transport.is_closing():
            self._transport.write(data)

    def _end_failed(self, last: bytes) -> None:
        """Send ``last``, the last answer of a failed login, or the alert of failed TLS, and end the connection."""
        if last:
            self.write(last)
        self._write_tls_output()
        self.end(self.reason or "")

    def _close_our_half(self) -> None:
        try:
            self._transport.write_eof()
        except OSError:
            # The peer reset the connection after the bytes that were just read, so there is no half left to close.
            self._transport.abort()

    def _disarm_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cancel_timers(self) -> None:
        self._disarm_deadline()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _remote_address(transport: asyncio.Transport) -> str:
    name = transport.get_extra_info("peername")
    return format_address(name[0], name[1]) if name else "?"


def _why_lost(error: Exception | None, awaited: str | None) -> str:
    why = "the peer closed the socket" if error is None else describe_os_error(error)
    return why if awaited is None else f"{why} while we waited for {awaited}"
