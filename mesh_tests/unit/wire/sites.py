"""How does a test run a driver with its node, log and one listener, and talk to it over a socket?"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mesh_tests.unit.wire.fake_node import FakeNode, Paper
from wire.driver import Driver
from wire.endpoint import Endpoint, EndpointSettings
from wire.node import ConnectorSpec, ListenerSpec
from wire.transport.log_events import ConnectionBug

LOOPBACK = "127.0.0.1"


class Site:
    """A driver with its node, log and one listener."""

    def __init__(self, name: str) -> None:
        self.node = FakeNode(name)
        self.log = Paper()
        self.driver = Driver(self.node, self.log.emit, container_id=name)
        self.port = 0

    def dial(self, port: int, **spec: Any) -> None:
        self.driver.connect(ConnectorSpec("up", LOOPBACK, port, **spec))


@asynccontextmanager
async def site(name: str = "server", *, has_bugs: bool = False, **listener: Any) -> AsyncIterator[Site]:
    """Closed however the test ends: uvloop would wait for an open listener, and hear no signal meanwhile."""
    made = Site(name)
    made.port = await made.driver.listen(ListenerSpec("amqp", LOOPBACK, 0, **listener))
    try:
        yield made
    finally:
        await made.driver.close(grace_s=1.0)
        assert has_bugs or made.log.of(ConnectionBug) == []
        assert len(made.node.disconnected) == len(made.node.endpoints)


async def exchange(port: int, data: bytes, *, closes: bool = False) -> bytes:
    """Send ``data``, then read until the server closes."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.write(data)
    if closes:
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


def reset_on_close(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def plain_client_bytes(container_id: str = "c") -> bytes:
    endpoint = Endpoint(EndpointSettings(container_id))
    endpoint.open()
    data = endpoint.output()
    endpoint.free()
    return data
