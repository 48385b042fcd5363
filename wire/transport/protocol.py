"""Interface of a connection and the protocol above its bytes: AMQP, or any other protocol over TCP or TLS.

    accept or dial --> on_made --> TLS, if any --> begin --> receive, receive_eof, on_timer --> on_ended --> on_gone

A protocol answers through its ``transport``: ``accept`` once the peer has logged in, ``establish`` once the handshake
is over (both at once in a protocol without a login), ``write`` or ``write_from``, and ``end``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from wire.transport.tls import PeerIdentity


class OutputSource(Protocol):
    """Output of a protocol that the connection takes only as fast as the socket does."""

    def output(self) -> bytes:
        """Remove and return the next bytes; b"" if there are none now."""
        ...

    def send_to(self, socket: int, /) -> bytes:
        """Write all output to a non-blocking socket, by its number; return removed bytes that the socket did not take.

        Raises OSError as `socket.send` does.
        """
        ...

    @property
    def is_finished(self) -> bool:
        """Whether the protocol has ended in order, so that an error of the socket is no news."""
        ...


class ByteTransport(Protocol):
    """A connection as its protocol sees it."""

    remote_address: str
    identity: PeerIdentity | None
    """Identity in the peer's certificate, from ``begin`` on; None without TLS or without a certificate."""
    reason: str | None
    """Why the connection ends, once known; the first reason is the one for the log."""
    is_active: bool
    """Whether the protocol has accepted the peer, and no end has begun."""
    is_output_paused: bool
    """Whether the socket takes no more bytes for now."""

    @property
    def is_encrypted(self) -> bool: ...

    @property
    def is_in_handshake(self) -> bool:
        """Whether TLS or the login above TLS goes on."""
        ...

    @property
    def has_deadline(self) -> bool: ...

    def accept(self) -> None:
        """Note that the peer has logged in."""
        ...

    def establish(self) -> None:
        """Note that the handshake is over, and with it the time limit; accept the peer, too."""
        ...

    def write(self, data: bytes) -> None:
        """Send a few bytes, or bytes whose number the peer cannot raise: the connection buffers without bound."""
        ...

    def write_from(self, source: OutputSource) -> None:
        """Write output for as long as the socket takes bytes; not before ``accept``."""
        ...

    def set_timer(self, delay_s: float) -> None:
        """Call the protocol's ``on_timer`` once, unless the connection ends before."""
        ...

    def set_deadline(self, delay_s: float, call: Callable[[], None]) -> None:
        """Call ``call`` unless the connection ends before; the latest deadline replaces the one before."""
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def guard(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run ``call`` for the protocol, from outside of the connection: an exception ends this connection only."""
        ...

    def on_fault(self, fault: Exception) -> None:
        """End this connection for an exception that the caller caught, as ``guard`` does."""
        ...

    def end(self, reason: str) -> None:
        """Close our half of the socket, discard further input, and be gone when the peer closes, or 2 s later."""
        ...

    def fail(self, reason: str, last: bytes = b"", delay_s: float = 0.0) -> None:
        """Read nothing more; after ``delay_s``, which makes guessing passwords slow, send ``last`` and end."""
        ...

    def close(self, reason: str = "closed by us") -> None:
        """End the connection in whatever phase it is."""
        ...

    def abort(self, reason: str) -> None:
        """Close the socket now: bytes still in our buffers are not sent, further input is not read."""
        ...

    def reset(self, reason: str) -> None:
        """Abort, and drop the bytes that the kernel has not sent yet, too: the peer gets a TCP reset."""
        ...


class ByteProtocol:
    """Base class of a protocol, of which each connection has an object of its own. By default, methods do nothing.

    An exception in any method ends the connection with a line in the log, and no other connection.
    """

    __slots__ = ("transport",)

    transport: ByteTransport
    """Set by the connection, before any call."""

    @property
    def awaited(self) -> str:
        """Name of the input that the handshake waits for, for a log line such as "no handshake within 10 s"."""
        return "handshake"

    def on_made(self) -> None:
        """Note that there is a socket; TLS comes next."""

    def begin(self) -> None:
        """Begin, above TLS if there is TLS; the identity of the peer is known."""

    def receive(self, data: bytes | memoryview) -> None:
        """Take bytes of the peer; a memoryview is only valid during the call."""

    def receive_eof(self) -> None:
        """Note that an accepted peer sends no more; by default, end the connection."""
        self.transport.end("the peer closed the socket")

    def pause_output(self) -> None:
        """Note that the socket takes no more bytes."""

    def resume_output(self) -> None:
        """Note that the socket takes bytes again."""

    def on_timer(self) -> None:
        """Do the work for which the protocol has set the timer."""

    def on_fault(self, fault: Exception) -> bool:
        """Answer an exception raised in this protocol; return False for a fault of this program, which aborts."""
        return False

    def close(self) -> None:
        """Close the connection in order, as a connector that is stopped asks."""
        self.transport.close()

    def on_ended(self, reason: str) -> None:
        """Note that nothing more is sent or read, though the socket may stay open for a while."""

    def on_gone(self, reason: str) -> None:
        """Note that the socket is closed. Called once, and last."""


class _GoneProtocol(ByteProtocol):
    __slots__ = ()

    def close(self) -> None:
        """Do nothing: the connection is gone."""


NO_PROTOCOL = _GoneProtocol()
"""Stands for the protocol of a connection that is gone, so that the two do not keep each other in memory."""
