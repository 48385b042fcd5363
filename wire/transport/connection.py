"""One TCP connection from first to last byte: TLS and SASL handshake, AMQP endpoint, flow of output, orderly end.

    NEW --> HANDSHAKE --layers accepted--> AMQP --is_finished, failure--> LINGER --> gone
               \\--------failure, silence--------------------------------/

Lingering: after the last byte we close our half and discard further input, because closing a socket with unread input
resets the connection, and the peer would lose the very error that explains the fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import cast

from wire.authentication import Layers
from wire.endpoint import Endpoint
from wire.errors import AmqpError
from wire.node import Node, format_address
from wire.origin import ConnectionMaker, ConnectionOwner, Origin
from wire.sasl import PasswordCheck, SaslAccepted
from wire.transport.os_errors import describe_os_error
from wire.transport.socket_tuning import forget_unsent, tune

LINGER_S = 2.0
CLOSE_TIMEOUT_S = 5.0
FAILED_LOGIN_DELAY_S = 0.5


class ConnectionPhase(Enum):
    NEW = auto()
    HANDSHAKE = auto()
    AMQP = auto()
    LINGER = auto()
    GONE = auto()


# A module variable, since Python 3.11 takes as long to reach a member of an enum class as for a call, which is too long
# for each read and write.
_AMQP = ConnectionPhase.AMQP


class SocketConnection(asyncio.BufferedProtocol):
    """One TCP connection: passes bytes between its socket, TLS and SASL, and its AMQP endpoint.

    Always: ``endpoint`` is set from phase AMQP on; the owner's ``on_gone`` is called exactly once, and last.

    Input is read into one buffer for all connections (``ConnectionOwner.input_buffer``) and taken out at once. AMQP
    without TLS is written from the engine straight to the socket; asyncio's buffer only gets bytes that the socket did
    not take.
    """

    __slots__ = (
        "_deadline", "_has_ended", "_has_peer_ended", "_is_open_seen", "_is_output_paused", "_is_plain", "_layers",
        "_loop", "_owner", "_phase", "_reason", "_socket", "_tick", "_transport", "endpoint", "is_clean", "keeper",
        "node", "origin", "remote_address",
    )  # fmt: skip

    def __init__(
        self,
        owner: ConnectionOwner[SocketConnection],
        keeper: ConnectionMaker[SocketConnection],
        node: Node,
        origin: Origin,
    ) -> None:
        self.keeper = keeper
        self.node = node
        self.origin = origin
        self.remote_address = "?"
        self.endpoint: Endpoint | None = None
        self.is_clean = False
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._layers: Layers
        self._transport: asyncio.Transport
        self._phase = ConnectionPhase.NEW
        self._reason: str | None = None
        self._is_open_seen = False
        self._is_output_paused = False
        self._is_plain = False
        self._has_peer_ended = False
        self._has_ended = False
        self._deadline: asyncio.TimerHandle | None = None
        self._tick: asyncio.TimerHandle | None = None

    # From asyncio
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not instances of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self.remote_address = _remote_address(self._transport)
        self._socket = tune(self._transport)
        self._owner.on_made(self)
        if self._phase is not ConnectionPhase.NEW:
            self._transport.abort()
            return
        self._phase = ConnectionPhase.HANDSHAKE
        self._arm_deadline(self.origin.handshake_timeout_s, self._on_handshake_timeout)
        self._owner.guard(self, self._begin)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._owner.input_buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = self._owner.input_buffer[:nbytes]
        if self._phase is _AMQP and self._is_plain:
            try:
                self._on_amqp(data)
            except Exception as fault:  # noqa: BLE001 (as in guard, which would cost a call for each read)
                self._owner.on_fault(self, fault)
        elif self._phase in (ConnectionPhase.HANDSHAKE, ConnectionPhase.AMQP):
            self._owner.guard(self, self._on_data, bytes(data))

    def eof_received(self) -> bool:
        self._owner.guard(self, self._on_eof)
        # If the peer ended its half of the connection, True keeps the socket open for our output. A lingering
        # connection has no output left, so False lets asyncio close the socket.
        return self._phase is ConnectionPhase.AMQP

    def pause_writing(self) -> None:
        self._is_output_paused = True
        if self.endpoint is not None:
            self.endpoint.is_output_blocked = True

    def resume_writing(self) -> None:
        self._is_output_paused = False
        if self.endpoint is not None and self._phase is ConnectionPhase.AMQP:
            self.endpoint.is_output_blocked = False
            self._owner.guard(self, self._on_writable)

    def connection_lost(self, error: Exception | None) -> None:
        if self._phase is ConnectionPhase.GONE:
            return
        self._phase = ConnectionPhase.GONE
        self._cancel_timers()
        if self._reason is None:
            self._reason = _why_lost(error, self._layers if self.endpoint is None else None)
        self._owner.on_gone(self, self._reason)

    # From the driver
    @property
    def accepted(self) -> SaslAccepted | None:
        return self._layers.accepted

    @property
    def is_encrypted(self) -> bool:
        return self._layers.is_encrypted

    @property
    def is_open(self) -> bool:
        """Whether the peer's OPEN has arrived."""
        return self._is_open_seen

    def flush(self) -> None:
        """Write the endpoint's output, as far as the socket takes bytes."""
        endpoint = self.endpoint
        if endpoint is None or self._phase is not _AMQP:
            return
        if not self._is_output_paused:
            if self._is_plain:
                self._write_plain(endpoint)
            else:
                self._write_encrypted(endpoint)
        if not endpoint.is_calm:
            self._look_after(endpoint)

    def _look_after(self, endpoint: Endpoint) -> None:
        """Wait for the peer's close if the endpoint is closed on our side; end the connection if it is finished."""
        if self._is_open_seen and self._deadline is None and not endpoint.is_local_open:
            self._arm_deadline(CLOSE_TIMEOUT_S, self._on_close_timeout)
        if endpoint.is_finished and not self._is_output_paused:
            ending = endpoint.ending
            self.is_clean = self._reason is None and ending.is_clean
            self._end(ending.reason)

    def _write_encrypted(self, endpoint: Endpoint) -> None:
        while not self._is_output_paused and (data := endpoint.output()):
            self._layers.send(data)
            self._write_layers()

    def _write_plain(self, endpoint: Endpoint) -> None:
        """Write the endpoint's output straight to the socket; asyncio sends the bytes that the socket does not take."""
        if self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size():
            return  # bytes of the handshake go first; asyncio calls resume_writing when these bytes are written
        try:
            while rest := endpoint.send_to(self._socket):
                self._transport.write(rest)
                if self._is_output_paused or self._transport.is_closing():
                    return
                # The socket has room again, and took the rest at once. No call of resume_writing follows: go on here.
        except OSError as error:
            while endpoint.output():
                pass
            # Abort for the socket's error, unless the peer has closed before: its reason is the better one for the log.
            if not endpoint.is_finished:
                self.abort(describe_os_error(error))

    def forsake(self) -> None:
        """Report a connection as lost whose dialing was given up just as it was made: uvloop may never report that."""
        if self._phase is not ConnectionPhase.NEW:
            self.connection_lost(None)

    def close(self, error: AmqpError | None) -> None:
        """Close the connection in order: send ``error`` with our close, and wait for the peer's close."""
        if self._phase is ConnectionPhase.NEW:
            self.abort("closed by us")
        elif self._phase is ConnectionPhase.HANDSHAKE and self.origin.connector is not None:
            self.abort("closed by us")  # a connection that we dialed has no answer yet that the peer would lose
        elif self._phase is ConnectionPhase.HANDSHAKE:
            self._end("closed by us")
        elif self._phase is ConnectionPhase.AMQP and self.endpoint is not None:
            self.endpoint.close(error)
            self.flush()
            if not self._is_open_seen:
                # proton sends no close to a peer that has not opened.
                self._end(f"closed by us: {error}" if error is not None else "closed by us")

    def abort(self, reason: str) -> None:
        """Close the socket now: bytes still in our buffers are not sent, further input is not read."""
        if self._phase is ConnectionPhase.GONE:
            return
        self._reason = self._reason or reason
        # A connection that asyncio has not given a socket yet aborts as soon as there is one.
        is_made, self._phase = self._phase is not ConnectionPhase.NEW, ConnectionPhase.LINGER
        if is_made:
            self._transport.abort()

    def reset(self, reason: str) -> None:
        """Abort, and drop the bytes that the kernel has not sent yet, too: the peer gets a TCP reset."""
        if not self._transport.is_closing():
            forget_unsent(self._transport)
        self.abort(reason)

    # Handshake
    def _begin(self) -> None:
        self._layers = Layers(self.origin.terms)
        self._write_layers()
        self._after_layers(b"")

    def _on_data(self, data: bytes) -> None:
        plain = self._layers.receive(data)
        if self._layers.failure is None:
            self._write_layers()
        self._after_layers(plain)

    def _after_layers(self, plain: bytes) -> None:
        layers = self._layers
        if layers.failure is not None:
            delay_s = FAILED_LOGIN_DELAY_S if layers.failure.is_credentials else 0.0
            self._fail(layers.failure.reason, delay_s)
        elif layers.password_check is not None:
            self._check_password(layers.password_check)
        elif layers.accepted is not None:
            self._on_plain(plain)
        if layers.has_ended and self._phase is ConnectionPhase.AMQP:
            self._on_eof()

    def _check_password(self, check: PasswordCheck) -> None:
        # Stop reading during the check, since no one would take the input, which would fill memory without bound.
        self._transport.pause_reading()
        self._owner.check_password(check, lambda is_right: self._owner.guard(self, lambda: self._on_checked(is_right)))

    def _on_checked(self, is_right: bool) -> None:
        if self._phase is not ConnectionPhase.HANDSHAKE:
            return
        plain = self._layers.on_password_checked(is_right)
        self._transport.resume_reading()
        if self._layers.failure is None:
            self._write_layers()
        self._after_layers(plain)

    def _on_handshake_timeout(self) -> None:
        self._owner.guard(self, self._give_up_on_silence)

    def _give_up_on_silence(self) -> None:
        waited_s = self.origin.handshake_timeout_s
        if self._phase is ConnectionPhase.HANDSHAKE:
            self._fail(f"no {self._layers.describe_state()} within {waited_s:g} s", 0.0)
        elif self._phase is ConnectionPhase.AMQP and self.endpoint is not None:
            self._end(f"no open frame within {waited_s:g} s")

    def _fail(self, reason: str, delay_s: float) -> None:
        """Send the answer of the failed TLS or SASL, then close; ``delay_s`` before makes guessing passwords slow."""
        self._reason = reason
        self._phase = ConnectionPhase.LINGER
        self._arm_deadline(delay_s, self._end_failed)

    def _end_failed(self) -> None:
        self._write_layers()
        self._end(self._reason or "")

    # AMQP
    def _on_plain(self, plain: bytes) -> None:
        if self.endpoint is None:
            self.endpoint = self._owner.on_ready(self, self.origin.peer(self._layers, self.remote_address))
            if self.endpoint is None:
                return
            self._phase = ConnectionPhase.AMQP
            self._is_plain = not self._layers.is_encrypted
        elif not plain:
            return
        self._on_amqp(plain)

    def _on_amqp(self, data: bytes | memoryview) -> None:
        endpoint = self.endpoint
        assert endpoint is not None
        endpoint.receive(data)
        if endpoint.has_stopped_reading and endpoint.is_input_undecodable:
            self._reason = "amqp:decode-error: the peer sent a frame that is not AMQP data"
            endpoint.close(AmqpError("amqp:decode-error", "a frame that is not AMQP data"))
        self._owner.on_input(self)
        if not self._is_open_seen:
            self._after_input()

    def _after_input(self) -> None:
        remote = self.endpoint.remote if self.endpoint is not None else None
        if remote is not None and not self._is_open_seen:
            self._is_open_seen = True
            self.keeper.on_opened(self, remote.container_id)
            if self._phase is ConnectionPhase.AMQP:
                self._disarm_deadline()
                self._on_tick()

    def _on_eof(self) -> None:
        if self._has_peer_ended:
            return
        self._has_peer_ended = True
        if self._phase is not ConnectionPhase.AMQP or self.endpoint is None or self.endpoint.is_finished:
            return
        if self.endpoint.owes_close:
            return  # the peer closed in order, and its last deliveries are still being passed on
        reason = self.endpoint.receive_eof()
        self._reason = self._reason or reason
        self._owner.on_input(self)
        if self._phase is ConnectionPhase.AMQP:
            self.flush()
            self._end(self._reason or "")

    def _on_writable(self) -> None:
        self.flush()
        if self._phase is ConnectionPhase.AMQP and not self._is_output_paused:
            self._owner.on_writable(self)

    def _on_tick(self) -> None:
        self._owner.guard(self, self._tick_endpoint)

    def _on_close_timeout(self) -> None:
        if self._phase is ConnectionPhase.AMQP and self.endpoint is not None:
            why = self.endpoint.ending.reason
            self._end(f"{why}, and the peer sent no close frame within {CLOSE_TIMEOUT_S:g} s")

    def _tick_endpoint(self) -> None:
        if self._phase is not ConnectionPhase.AMQP or self.endpoint is None:
            return
        now = self._owner.now()
        deadline = self.endpoint.tick(now)
        if deadline is not None:
            self._tick = self._loop.call_later(max(deadline - now, 0.001), self._on_tick)
        self._owner.on_input(self)
        if self._is_output_paused and self.endpoint.has_failed:
            # The peer sends nothing and reads nothing, so our close frame would never be written: abort.
            self.abort(self.endpoint.ending.reason)

    # The end
    def _end(self, reason: str) -> None:
        """Close our half of the socket, discard further input, and be gone when the peer closes, or after LINGER_S."""
        self._phase = ConnectionPhase.LINGER
        self._reason = self._reason or reason
        if self._has_ended or self._transport.is_closing():
            return
        self._has_ended = True
        # Tell the owner of the end in the next turn of the event loop: the caller may look at the endpoint once more
        # before the owner frees the endpoint.
        self._loop.call_soon(self._owner.on_ended, self, self._reason)
        self._cancel_timers()
        self._arm_deadline(LINGER_S, self._transport.abort)
        self._layers.close()
        self._write_layers()
        if self._has_peer_ended:
            self._transport.close()
        else:
            self._close_our_half()

    def _close_our_half(self) -> None:
        try:
            self._transport.write_eof()
        except OSError:
            # The peer has reset the connection after the bytes that were just read: no half is left to close.
            self._transport.abort()

    def _write_layers(self) -> None:
        if (data := self._layers.output()) and not self._transport.is_closing():
            self._transport.write(data)

    def _arm_deadline(self, delay_s: float, call: Callable[[], None]) -> None:
        self._disarm_deadline()
        self._deadline = self._loop.call_later(delay_s, call)

    def _disarm_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cancel_timers(self) -> None:
        self._disarm_deadline()
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None


def _remote_address(transport: asyncio.Transport) -> str:
    name = transport.get_extra_info("peername")
    return format_address(name[0], name[1]) if name else "?"


def _why_lost(error: Exception | None, layers: Layers | None) -> str:
    what = "the peer closed the socket" if error is None else describe_os_error(error)
    return what if layers is None else f"{what} while we waited for {layers.describe_state()}"
