"""Interface of a connection and the protocol above its bytes: AMQP, or any other protocol over TCP or TLS.

    accept or dial --> on_made --> TLS, if any --> begin --> receive, receive_eof, on_timer --> on_ended --> on_gone

A protocol answers through its ``transport``: ``accept`` once the peer has logged in, ``establish`` once the handshake
is over (both at once in a protocol without a login), ``write`` or ``write_from``, and ``end``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from wire.transport.tls import PeerIdentity, TlsAgreement


class OutputSource(Protocol):
    """Interface of a protocol's output, which the connection takes only as fast as the socket takes bytes."""

    def output(self) -> bytes:
        """Remove and return the next bytes of output; b"" if there are none now."""
        ...

    def send_to(self, socket: int, /) -> bytes:
        """Write output to a non-blocking socket, given by its number, until the socket takes no more.

        Return bytes that were removed from the output and that the socket did not take; b"" if no output is left.
        Raises OSError as `socket.send` does.
        """
        ...

    @property
    def is_finished(self) -> bool:
        """Whether the protocol has ended in order, so that a later error of the socket need not be reported."""
        ...


class ByteTransport(Protocol):
    """Interface of a socket connection to its protocol: the state that the protocol reads, the methods it calls."""

    remote_address: str
    identity: PeerIdentity | None
    """Identity in the peer's certificate, from ``begin`` on; None without TLS or without a certificate."""
    tls: TlsAgreement | None
    """What the TLS handshake agreed on, from ``begin`` on; None without TLS."""
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
        """Whether the TLS handshake or the login above TLS is still going on."""
        ...

    @property
    def has_deadline(self) -> bool: ...

    def accept(self) -> None:
        """Note that the peer has logged in: from now on `is_active` is true, and `write_from` writes."""
        ...

    def establish(self) -> None:
        """Note that the protocol's handshake is over, which ends its time limit; accept the peer if not done before."""
        ...

    def write(self, data: bytes) -> None:
        """Send ``data``, which is buffered without bound if the socket takes no bytes.

        Protocols use this only for few bytes, or for bytes whose number the peer cannot raise.
        """
        ...

    def write_from(self, source: OutputSource) -> None:
        """Write output of ``source`` for as long as the socket takes bytes, if `is_active`; else do nothing."""
        ...

    def set_timer(self, delay_s: float) -> None:
        """Call the protocol's ``on_timer`` once in ``delay_s``, unless the connection ends before.

        A timer set earlier is dropped.
        """
        ...

    def set_deadline(self, delay_s: float, call: Callable[[], None]) -> None:
        """Call ``call`` in ``delay_s``, unless the connection ends before; a deadline set earlier is dropped."""
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def guard(self, call: Callable[..., None], *arguments: Any) -> None:
        """Run ``call``; an exception in it goes to `on_fault`, and so ends this connection only."""
        ...

    def on_fault(self, fault: Exception) -> None:
        """End this connection because of ``fault``, an exception that the caller caught.

        The protocol's `on_fault` may answer the exception; else the connection is aborted, with a line in the log.
        """
        ...

    def end(self, reason: str) -> None:
        """Close our half of the socket and discard further input; close the socket when the peer does, or after 2 s."""
        ...

    def fail(self, reason: str, last: bytes = b"", delay_s: float = 0.0) -> None:
        """Discard further input; after ``delay_s``, which makes guessing passwords slow, send ``last`` and end."""
        ...

    def close(self, reason: str = "closed by us") -> None:
        """End the connection in the way that fits its phase.

        A new connection, or one that we dialed and that is in its handshake, is aborted; any other ends in order.
        """
        ...

    def abort(self, reason: str) -> None:
        """Close the socket now: bytes still in our buffers are not sent, further input is not read."""
        ...

    def reset(self, reason: str) -> None:
        """Close the socket now, as `abort` does, and drop the bytes that the kernel has not sent: TCP resets."""
        ...


class ByteProtocol:
    """Base class of protocols above a socket connection; each connection has a protocol object of its own.

    By default, most methods do nothing. An exception in any method ends this connection, with a line in the log, and no
    other connection.
    """

    __slots__ = ("transport",)

    transport: ByteTransport
    """Set by the connection, before any call."""

    @property
    def awaited(self) -> str:
        """Name of the peer's input that the handshake waits for, for a log line such as "no open frame within 10 s"."""
        return "handshake"

    def on_made(self) -> None:
        """Note that the connection has a socket; called once, before TLS."""

    def begin(self) -> None:
        """Begin the protocol's login; called once TLS, if any, is done, and the peer's certificate is known."""

    def receive(self, data: bytes | memoryview) -> None:
        """Take bytes of the peer; a memoryview is only valid during the call."""

    def receive_eof(self) -> None:
        """Note that the peer, which was accepted, closed its half of the socket; by default, end the connection."""
        self.transport.end("the peer closed the socket")

    def pause_output(self) -> None:
        """Note that the socket takes no more bytes for now: the protocol writes nothing until `resume_output`."""

    def resume_output(self) -> None:
        """Note that the socket takes bytes again, so that the protocol may go on writing."""

    def on_timer(self) -> None:
        """Do the work for which the protocol called `ByteTransport.set_timer`."""

    def on_fault(self, fault: Exception) -> bool:
        """Handle an exception raised in this protocol, and return True; False if the connection has to be aborted.

        By default, False: the exception counts as a bug of this program.
        """
        return False

    def close(self) -> None:
        """Close the connection in order; called by a connector that is stopped."""
        self.transport.close()

    def on_ended(self, reason: str) -> None:
        """Note that nothing more is sent or read on the connection, though its socket may stay open for a while."""

    def on_gone(self, reason: str) -> None:
        """Note that the connection's socket is closed, for ``reason``. Called once, after all other methods."""


class _GoneProtocol(ByteProtocol):
    __slots__ = ()

    def close(self) -> None:
        """Do nothing: the connection is closed already."""


NO_PROTOCOL = _GoneProtocol()
"""Stands for the protocol of a connection that is gone, so that the two do not keep each other in memory."""
