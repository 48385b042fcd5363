"""Holds many idle connections or links, in a process of the load generator.

hold_connections   makes connections with a receiver each; a limited number are in their handshake at once
hold_links         makes links in several sessions of a few connections: attach, keep, detach
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from mesh.bench import frames, performatives
from mesh.bench.dial import HANDSHAKE_TIMEOUT_S, READ_BYTES, BenchServer, Dialed, beat_s, connect, container_id, dial
from mesh.bench.handshake import Handshake, LinkPlan, NoSaslLayer, PeerOpen
from mesh.bench.performatives import ATTACH, CLOSE, DETACH, EMPTY_FRAME, END
from mesh.bench.worker import WorkerReport
from mesh.client.errors import MeshError, TimedOut, Unreachable
from mesh.terminal.failure import CommandFailed
from wire.sasl import SaslClientSettings
from wire.transport.os_errors import describe_os_error

# The greatest number of handshakes at once: enough to keep a server busy, without flooding its listener.
HANDSHAKES_AT_ONCE = 64
# With this number of unanswered attaches (or detaches), no more are sent, so that the answers fit into the socket's
# buffer.
ATTACHES_AT_ONCE = 512


def hold_connections(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    place = BenchServer(**plan["place"])
    # The first connection is made and closed alone, because `dial` raises any error with a readable reason.
    probe = dial(place, [LinkPlan(address_of(plan["addresses"], 0), True)])
    probe.close()
    yield WorkerReport({"ready": True})
    crowd = IdleConnections(place, plan["addresses"], plan["count"])
    seconds = crowd.connect_all()
    yield WorkerReport({"connected": plan["count"], "seconds": seconds}, crowd.keep_alive)
    crowd.close()
    yield WorkerReport({"closed": True})


class IdleConnections:
    """Many idle connections, each with a receiver. ``addresses`` is one address, or a pattern with %d for the number of
    the connection.
    """

    def __init__(self, place: BenchServer, addresses: str, count: int) -> None:
        self._place = place
        self._addresses = addresses
        self._count = count
        self._selector = selectors.DefaultSelector()
        self._open: list[socket.socket] = []
        self._beat_s = 0.0
        self._said_at = time.monotonic()
        self._has_sasl = True

    def connect_all(self) -> float:
        """Open all connections with their links, and return the seconds taken. Raise Unreachable, BenchRefused or
        TimedOut.
        """
        started_at = time.monotonic()
        begun = 0
        moved_at = started_at
        while len(self._open) < self._count:
            while begun < self._count and begun - len(self._open) < HANDSHAKES_AT_ONCE:
                self._begin(begun)
                begun += 1
            ready = self._selector.select(1.0)
            moved_at = time.monotonic() if ready else moved_at
            if time.monotonic() - moved_at > HANDSHAKE_TIMEOUT_S:
                raise TimedOut(
                    f"server {self._place.name} sent nothing for {HANDSHAKE_TIMEOUT_S:g} s, after "
                    f"{len(self._open)} connections were open"
                )
            for key, _ in ready:
                self._go_on(key)
            self.keep_alive()
        return time.monotonic() - started_at

    def _begin(self, number: int) -> None:
        links = [LinkPlan(address_of(self._addresses, number), True)]
        sasl = SaslClientSettings(self._place.user, self._place.password, hostname=self._place.host)
        handshake = Handshake(container_id(), self._place.host, links, sasl if self._has_sasl else None)
        self._selector.register(self._connect(), selectors.EVENT_WRITE, (handshake, number))

    def _connect(self) -> socket.socket:
        if self._place.is_tls:
            return connect(self._place)
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex((self._place.host, self._place.port))
        return connection

    def _go_on(self, key: selectors.SelectorKey) -> None:
        handshake, number = key.data
        connection = key.fileobj
        assert isinstance(connection, socket.socket)
        try:
            if key.events & selectors.EVENT_READ:
                handshake.receive(self._read(connection))
            connection.sendall(handshake.output())
        except NoSaslLayer:
            self._has_sasl = False
            self._selector.unregister(connection)
            connection.close()
            self._begin(number)
            return
        except OSError as error:
            raise Unreachable(f"{self._where()}: cannot connect: {describe_os_error(error)}") from None
        except Unreachable as error:
            raise Unreachable(f"{self._where()}: {error.message}") from None
        if handshake.is_done:
            self._selector.unregister(connection)
            self._open.append(connection)
            self._beat_s = beat_s(handshake.peer)
        else:
            self._selector.modify(connection, selectors.EVENT_READ, key.data)

    @staticmethod
    def _read(connection: socket.socket) -> bytes:
        data = connection.recv(READ_BYTES)
        if not data:
            raise Unreachable("the peer closed the connection during the AMQP handshake")
        return data

    def _where(self) -> str:
        return f"connection {len(self._open) + 1} to {self._place.name}"

    def keep_alive(self) -> None:
        """Send an empty frame on every open connection if 0.4 of the peer's idle timeout has passed since the last such
        frames; if the peer has no idle timeout, send the frames every hour.
        """
        now = time.monotonic()
        if self._beat_s and now - self._said_at > self._beat_s:
            self._said_at = now
            for connection in self._open:
                say(connection, EMPTY_FRAME)

    def close(self) -> None:
        for connection in self._open:
            say(connection, performatives.CLOSE_FRAME)
        for connection in self._open:
            connection.close()


def hold_links(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    holders = [
        LinkHolder(dial(BenchServer(**plan["place"]), []), share, plan)
        for share in shares(plan["count"], plan["connections"])
    ]

    def keep_alive() -> None:
        for holder in holders:
            holder.keep_alive()

    def all_do(what: str) -> float:
        started_at = time.monotonic()
        for holder in holders:
            getattr(holder, what)(keep_alive)
        return time.monotonic() - started_at

    yield WorkerReport({"ready": True}, keep_alive)
    yield WorkerReport({"seconds": all_do("attach")}, keep_alive)
    yield WorkerReport({"seconds": all_do("detach")}, keep_alive)
    for holder in holders:
        holder.close()
    yield WorkerReport({"closed": True})


def shares(count: int, parts: int) -> list[range]:
    """Split the numbers from 0 to ``count`` - 1 into ``parts`` ranges of similar size; leave out empty ranges."""
    bounds = [count * part // parts for part in range(parts + 1)]
    return [range(first, last) for first, last in pairwise(bounds) if first < last]


def address_of(pattern: str, number: int) -> str:
    return pattern % number if "%d" in pattern else pattern


class LinkHolder:
    """The links of one connection: link n is in session n // per_session, with handle n % per_session."""

    def __init__(self, dialed: Dialed, numbers: range, plan: Mapping[str, Any]) -> None:
        self._connection = dialed.socket
        self._numbers = numbers
        self._per_session = plan["per_session"]
        self._addresses = plan["addresses"]
        self._is_receiver = plan["is_receiver"]
        self._stall_s = plan["stall_s"]
        self._container_id = container_id()
        self._inbox = bytearray(dialed.leftover)
        self._beat_s = beat_s(dialed.peer)
        self._said_at = time.monotonic()
        self._dialed = dialed
        self._connection.setblocking(True)
        self._connection.settimeout(self._stall_s)
        check_sessions(-(-len(numbers) // self._per_session), dialed.peer)

    def attach(self, keep_alive: Any) -> None:
        """Attach all links. Raise BenchRefused, with the peer's reason, if a link is refused, and TimedOut or
        Unreachable if the peer does not answer.
        """
        self._exchange(self._attach_frames, ATTACH, keep_alive)

    def detach(self, keep_alive: Any) -> None:
        self._exchange(self._detach_frames, DETACH, keep_alive)

    def _exchange(self, frames_of: Any, answer: int, keep_alive: Any) -> None:
        """Send the frames for all links and wait for the answers, with a limited number of answers outstanding."""
        said = heard = 0
        while heard < len(self._numbers):
            while said < len(self._numbers) and said - heard < ATTACHES_AT_ONCE:
                some = range(said, min(said + self._per_session, len(self._numbers)))
                self._send(b"".join(frames_of(index) for index in some))
                said = some.stop
            heard += self._hear(answer)
            keep_alive()

    def _attach_frames(self, index: int) -> bytes:
        channel, handle = divmod(index, self._per_session)
        number = self._numbers[index]
        attach = performatives.attach_frame(
            channel,
            f"{self._container_id}-{number}",
            is_receiver=self._is_receiver,
            address=address_of(self._addresses, number),
            handle=handle,
        )
        return performatives.begin_frame(channel) + attach if handle == 0 else attach

    def _detach_frames(self, index: int) -> bytes:
        return performatives.detach_frame(*divmod(index, self._per_session))

    def _send(self, data: bytes) -> None:
        self._said_at = time.monotonic()
        try:
            self._connection.sendall(data)
        except OSError as error:
            raise Unreachable(f"connection lost: {describe_os_error(error)}") from None

    def _hear(self, answer: int) -> int:
        """Read from the socket once, and return how many of the frames that are complete by then have the code
        ``answer``. Raise the peer's error for any other detach, end or close, and TimedOut or Unreachable if nothing
        comes.
        """
        try:
            data = self._connection.recv(READ_BYTES)
        except TimeoutError:
            raise TimedOut(
                f"the server sent nothing for {self._stall_s:g} s while it owed answers to attaches or detaches"
            ) from None
        except OSError as error:
            raise Unreachable(f"connection lost: {describe_os_error(error)}") from None
        if not data:
            raise Unreachable("connection lost: the peer closed the connection without an AMQP error")
        self._inbox += data
        found, size = frames.codes(self._inbox)
        for code, _, at in found:
            if code != answer and code in (DETACH, END, CLOSE):
                raise self._why_ended(at)
        del self._inbox[:size]
        return sum(code == answer for code, _, _ in found)

    def _why_ended(self, at: int) -> MeshError:
        link = LinkPlan(address_of(self._addresses, self._numbers[0]), self._is_receiver)
        return performatives.why_ended(bytes(self._inbox[at:]), link.what)

    def keep_alive(self) -> None:
        if time.monotonic() - self._said_at > self._beat_s:
            self._send(EMPTY_FRAME)

    def close(self) -> None:
        self._dialed.close()


def check_sessions(count: int, peer: PeerOpen) -> None:
    if count > peer.channel_max + 1:
        raise CommandFailed(
            f"a connection needs {count} sessions, and the peer allows {peer.channel_max + 1} on a connection",
            fix="use more --connections, or more links --per-session.",
        )


def say(connection: socket.socket, frame: bytes) -> None:
    try:
        connection.setblocking(False)
        connection.send(frame)
    except OSError:
        # A lost connection shows in the measured figures, so no error is needed here.
        return
