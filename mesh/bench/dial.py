"""Connects the load generator to a server and attaches links, or raises an error with the reason."""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mesh.bench.bench_connection import BenchConnection
from mesh.bench.handshake import Attached, Handshake, LinkPlan, NoSaslLayer, PeerOpen, Welcome
from mesh.bench.performatives import CLOSE_FRAME, detach_frame
from mesh.client.errors import TimedOut, Unreachable
from wire.sasl import SaslClientSettings
from wire.transport.os_errors import describe_os_error

HANDSHAKE_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 2.0
READ_BYTES = 65536
# Share of the peer's idle timeout after which a connection without traffic sends an empty frame.
BEAT_SHARE = 0.4
LONGEST_BEAT_S = 3600.0


@dataclass(frozen=True, slots=True)
class BenchServer:
    """The server that the load generator connects to, and the user that logs in.

    TLS works only for idle connections, because `BenchConnection` reads and writes the socket itself.
    """

    host: str
    port: int
    user: str | None = None
    password: str | None = None
    is_tls: bool = False

    def to_map(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def name(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Dialed:
    """A connection whose handshake is done, with its non-blocking socket and its attached links."""

    socket: socket.socket
    peer: PeerOpen
    attached: list[Attached]
    leftover: bytes
    has_sasl: bool = True

    def carrier(self, unsent_bound_bytes: int = 0) -> BenchConnection:
        if unsent_bound_bytes:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, unsent_bound_bytes)
        return BenchConnection(self.socket.fileno(), self.peer.frame_bytes, beat_s(self.peer), unsent_bound_bytes)

    def close(self) -> None:
        """End the durable subscriptions of the links, and close the AMQP connection, then the socket.

        The socket stays open until the peer has closed, or has sent nothing for 2 s, so that the last settlements reach
        the peer. A lost connection raises no error.
        """
        with self.socket:
            try:
                self.socket.settimeout(CLOSE_TIMEOUT_S)
                self.socket.sendall(b"".join(self._unsubscribing()) + CLOSE_FRAME)
                while self.socket.recv(READ_BYTES):
                    pass
            except OSError:
                return

    def _unsubscribing(self) -> Iterator[bytes]:
        yield from (detach_frame(link.channel) for link in self.attached if link.plan.is_lasting)


def beat_s(peer: PeerOpen) -> float:
    return peer.idle_timeout_s * BEAT_SHARE or LONGEST_BEAT_S


def container_id() -> str:
    return f"amqpmesh-bench-{secrets.token_hex(4)}"


def dial(place: BenchServer, links: Sequence[LinkPlan], receive_buffer_bytes: int = 0) -> Dialed:
    """Connect to the server ``place`` and attach ``links``.

    ``receive_buffer_bytes``: size of the socket's receive buffer; 0 leaves the choice to the kernel. Raise Unreachable,
    TimedOut or BenchRefused; the text names the server or the address.
    """
    sasl = SaslClientSettings(place.user, place.password, hostname=place.host)
    try:
        return _dial(place, links, sasl, receive_buffer_bytes)
    except NoSaslLayer:
        return _dial(place, links, None, receive_buffer_bytes)


def _dial(
    place: BenchServer, links: Sequence[LinkPlan], sasl: SaslClientSettings | None, receive_buffer_bytes: int
) -> Dialed:
    connection = connect(place)
    bound_receive_buffer(connection, receive_buffer_bytes)
    handshake = Handshake(container_id(), place.host, links, sasl)
    try:
        _converse(connection, handshake)
    except TimeoutError:
        connection.close()
        raise TimedOut(
            f"server {place.name} did not finish the AMQP handshake within {HANDSHAKE_TIMEOUT_S:g} s"
        ) from None
    except BaseException as error:
        connection.close()
        if isinstance(error, Unreachable):
            raise Unreachable(f"{place.name}: {error.message}", fix=error.fix) from None
        raise
    connection.setblocking(False)
    return Dialed(connection, handshake.peer, handshake.attached, handshake.leftover, sasl is not None)


def bound_receive_buffer(connection: socket.socket, size: int) -> None:
    if size:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)


def connect(place: BenchServer) -> socket.socket:
    try:
        connection = socket.create_connection((place.host, place.port), HANDSHAKE_TIMEOUT_S)
    except OSError as error:
        raise Unreachable(f"{place.name}: cannot connect: {describe_os_error(error)}") from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return encrypt(connection, place) if place.is_tls else connection


def encrypt(connection: socket.socket, place: BenchServer) -> socket.socket:
    """Start TLS with a server of our own on loopback, without checking the server's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        return context.wrap_socket(connection)
    except OSError as error:
        raise Unreachable(
            f"{place.name}: the TLS handshake with this server failed: {describe_os_error(error)}"
        ) from None


def _converse(connection: socket.socket, handshake: Handshake) -> None:
    deadline = time.monotonic() + HANDSHAKE_TIMEOUT_S
    while not handshake.is_done:
        try:
            if data := handshake.output():
                connection.sendall(data)
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
            data = connection.recv(READ_BYTES)
        except TimeoutError:
            raise
        except OSError as error:
            raise Unreachable(f"connection lost: {describe_os_error(error)}") from None
        if not data:
            raise Unreachable("connection lost: the peer closed the connection during the AMQP handshake")
        handshake.receive(data)


def welcome(listening: socket.socket, link_count: int = 1) -> Dialed:
    """Wait for the load generator to connect to ``listening``, and return once ``link_count`` of its links are
    accepted. Raise TimedOut if nothing connects within 10 s.
    """
    listening.settimeout(HANDSHAKE_TIMEOUT_S)
    while True:
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            raise TimedOut(f"no load generator connected within {HANDSHAKE_TIMEOUT_S:g} s") from None
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = Welcome(link_count)
        while not hello.is_over:
            hello.receive(connection.recv(READ_BYTES))
            connection.sendall(hello.output())
        if hello.is_done:
            connection.setblocking(False)
            return Dialed(connection, hello.peer, hello.attached, hello.leftover)
        # The generator asked for SASL, which this server lacks, and connects again without SASL.
        connection.close()


def listen() -> socket.socket:
    """Listen on loopback, on a port of the kernel's choice, with a socket that a child process may inherit."""
    listening = socket.create_server(("127.0.0.1", 0))
    os.set_inheritable(listening.fileno(), True)
    return listening
