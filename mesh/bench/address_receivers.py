"""The receiving process of `bench addresses --line`: a receiver for each address, on a few connections.

It is not fast, and need not be: the routers' CPU is measured, not that of the load generator.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mesh.bench.dial import READ_BYTES, BenchServer, connect, container_id
from mesh.bench.worker import WorkerReport
from mesh.client.errors import TimedOut, Unreachable
from wire import delivery as deliveries
from wire.delivery import ACCEPTED
from wire.endpoint import Endpoint, EndpointSettings
from wire.events import Closed, LinkDetached, LinkEstablished
from wire.link import IncomingLink, Link
from wire.terminus import source, target

LINKS_OF_CONNECTION = 10_000
LINKS_OF_SESSION = 100
CREDIT = 10
BEAT_S = 1.0
BLOCKED_S = 0.01
SILENCE_S = 600.0


def receive_addresses(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    """Attach a receiver to each of ``addresses`` addresses; then receive and accept until ``messages`` have come."""
    crowd = AddressReceivers(plan)
    crowd.attach()
    yield WorkerReport({"ready": True}, crowd.step)
    crowd.receive()
    yield WorkerReport({"received": crowd.received}, crowd.step)


class AddressReceivers:
    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._plan = plan
        self._selector = selectors.DefaultSelector()
        self._connections: list[ReceivingConnection] = []
        self.established = self.received = 0

    def attach(self) -> None:
        count = self._plan["addresses"]
        place = BenchServer(**self._plan["place"])
        for first in range(0, count, LINKS_OF_CONNECTION):
            connection = ReceivingConnection(place, self)
            self._connections.append(connection)
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
            # The senders write all numbers with equally many digits.
            prefix, digits = self._plan["prefix"], len(str(count - 1))
            numbers = range(first, min(count, first + LINKS_OF_CONNECTION))
            connection.attach([f"{prefix}{number:0{digits}}" for number in numbers])
        self._wait("established", count)

    def receive(self) -> None:
        self._wait("received", self._plan["messages"])

    def _wait(self, what: str, count: int) -> None:
        """Move bytes until ``count`` are ``what``. Raise TimedOut once nothing has moved for ``stall_s``."""
        seen, seen_at = -1, time.monotonic()
        while (known := getattr(self, what)) < count:
            if known != seen:
                seen, seen_at = known, time.monotonic()
            elif time.monotonic() - seen_at > self._plan["stall_s"]:
                raise TimedOut(f"of {count:,} receivers or messages, {known:,} were {what}, and no more came")
            self.step(BEAT_S)

    def step(self, timeout_s: float = 0.0) -> None:
        is_blocked = any(connection.unsent for connection in self._connections)
        for key, _ in self._selector.select(min(timeout_s, BLOCKED_S) if is_blocked else timeout_s):
            key.data.read()
        for connection in self._connections:
            connection.write()


class ReceivingConnection:
    """One connection of the crowd, with an endpoint of the nodes' own kind."""

    def __init__(self, place: BenchServer, crowd: AddressReceivers) -> None:
        self._crowd = crowd
        self.socket: socket.socket = connect(place)
        # The router may stop reading until it could write: so a write must not keep this process from reading.
        self.socket.setblocking(False)
        self.unsent = b""
        # A router that is asked for very many links at once may be silent for a while.
        self.endpoint = Endpoint(EndpointSettings(container_id(), idle_timeout_s=SILENCE_S))
        self.endpoint.open()

    def attach(self, addresses: Sequence[str]) -> None:
        for number, address in enumerate(addresses):
            if number % LINKS_OF_SESSION == 0:
                session = self.endpoint.begin()
            link = session.receiver(f"r{number}")
            link.set_source(source(address))
            link.set_target(target(None))
            link.open()
            link.grant(CREDIT)
            if number % LINKS_OF_SESSION == LINKS_OF_SESSION - 1:
                self._crowd.step()

    def read(self) -> None:
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise Unreachable("connection lost: the router closed the connection of the receivers")
        self.endpoint.receive(data)
        for event in self.endpoint.drain(self):
            if isinstance(event, LinkEstablished):
                self._crowd.established += 1
            elif isinstance(event, LinkDetached | Closed):
                raise Unreachable(f"the router ended a receiver or its connection: {event.error}")

    def write(self) -> None:
        self.endpoint.tick(time.monotonic())
        try:
            while unsent := self.unsent or self.endpoint.output():
                self.unsent = unsent
                self.unsent = unsent[self.socket.send(unsent) :]
        except BlockingIOError:
            return

    # The sink of the endpoint
    def on_delivery(self, link: IncomingLink, _: Any) -> None:
        while (current := link.current) is not None and not deliveries.is_partial(current):
            while size := deliveries.pending(current):
                link.recv(size)
            link.advance()
            deliveries.set_outcome(current, ACCEPTED)
            deliveries.settle(current)
            self._crowd.received += 1
            if link.credit <= CREDIT // 2:
                link.grant(CREDIT - link.credit)

    def on_disposition(self, link: Link, delivery: Any) -> None:
        """Ignore what the router says of a delivery that was settled."""

    def on_flow(self, link: Link) -> None:
        """Ignore the flows of the router, which sends no more than the credit."""
