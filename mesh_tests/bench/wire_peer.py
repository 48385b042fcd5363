"""A server for the load generator, made of the endpoints that routers are made of: does each understand the other?"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

from mesh.bench.dial import BenchServer
from wire import delivery as deliveries
from wire.endpoint import Endpoint, EndpointSettings
from wire.errors import AmqpError
from wire.events import Closed, LinkAttached
from wire.link import IncomingLink, OutgoingLink
from wire.outcome import ACCEPTED, Outcome

HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
REFUSED = "refused"
JOIN_S = 20.0


class WirePeer:
    """Takes one connection at a time, without SASL. What is sent to it is in ``messages``, with whether it was settled;
    who receives gets ``to_send``: (payload, whether it is settled)."""

    def __init__(
        self,
        *,
        to_send: Sequence[tuple[bytes, bool]] = (),
        credit: int = 100,
        outcome_of: Callable[[int], Outcome | None] = lambda _: ACCEPTED,
        then: Callable[[Any], None] = lambda _: None,
        **settings: Any,
    ) -> None:
        """``outcome_of`` the n-th message may be None: it is never settled. ``then`` is called with each new link."""
        self.messages: list[tuple[bytes, bool]] = []
        self.outcomes: list[Outcome | None] = []
        self._read = b""
        self._to_send = list(to_send)
        self._credit = credit
        self._outcome_of = outcome_of
        self._then = then
        self._settings = settings
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded)

    def __enter__(self) -> WirePeer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(JOIN_S)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error

    @property
    def place(self) -> BenchServer:
        return BenchServer("127.0.0.1", self._listening.getsockname()[1])

    def _guarded(self) -> None:
        try:
            self._serve_all()
        except OSError:
            return
        except BaseException as error:  # noqa: BLE001 (raised again where the test ends)
            self._error = error

    def _serve_all(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            with connection:
                if _read_exactly(connection, len(HEADER)) == HEADER:
                    self._serve(connection)
                else:
                    connection.sendall(HEADER)

    def _serve(self, connection: socket.socket) -> None:
        endpoint = Endpoint(EndpointSettings("peer", **self._settings))
        endpoint.receive(HEADER)
        endpoint.open()
        _flush(endpoint, connection)
        while data := connection.recv(65536):
            endpoint.receive(data)
            for event in endpoint.drain(self):
                if isinstance(event, LinkAttached):
                    self._on_attached(event.link)
                if isinstance(event, Closed):
                    endpoint.close()
                    _flush(endpoint, connection)
                    return
            self._send_all(endpoint, connection)

    def _on_attached(self, link: Any) -> None:
        termini = (link.remote_source.address, link.remote_target.address)
        if REFUSED in termini:
            link.refuse(AmqpError("amqp:not-found", "no such address"))
            return
        link.accept_as_proposed()
        if isinstance(link, IncomingLink):
            link.grant(self._credit)
        self._then(link)

    def _send_all(self, endpoint: Endpoint, connection: socket.socket) -> None:
        left = len(self._to_send) + 1
        while len(self._to_send) < left:
            left = len(self._to_send)
            for link in list(endpoint.links):
                if isinstance(link, OutgoingLink):
                    self._send(link)
            _flush(endpoint, connection)

    def _send(self, link: OutgoingLink) -> None:
        while self._to_send and link.credit > 0 and link.is_writable:
            payload, is_settled = self._to_send.pop(0)
            delivery = link.start(len(self._to_send).to_bytes(4, "big"))
            link.send(payload)
            link.finish()
            if is_settled:
                deliveries.settle(delivery)

    # The sink of its endpoint
    def on_delivery(self, link: IncomingLink, delivery: int) -> None:
        # Read as it comes: the session's window may be smaller than the message.
        self._read += link.recv(deliveries.pending(delivery))
        if deliveries.is_partial(delivery):
            return
        payload, is_settled = self._read, deliveries.is_settled(delivery)
        self._read = b""
        link.advance()
        outcome = self._outcome_of(len(self.messages))
        self.messages.append((payload, is_settled))
        if outcome is not None:
            deliveries.set_outcome(delivery, outcome)
            deliveries.settle(delivery)
            link.grant(1)

    def on_disposition(self, link: Any, delivery: int) -> None:
        if isinstance(link, OutgoingLink) and deliveries.has_outcome(delivery):
            self.outcomes.append(deliveries.remote_outcome(delivery))
            deliveries.settle(delivery)

    def on_flow(self, link: Any) -> None:
        """Credit is looked at after each input."""


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := connection.recv(size - len(data))):
        data += more
    return data


def _flush(endpoint: Endpoint, connection: socket.socket) -> None:
    while output := endpoint.output():
        connection.sendall(output)
