"""A protocol of ten lines, the places where it listens or dials, and a client that says a line to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from mesh.certs import Certificate
from mesh_tests.unit.wire.fake_node import Paper
from mesh_tests.unit.wire.sites import LOOPBACK
from wire.transport.connector import Connector
from wire.transport.io_context import IoContext
from wire.transport.listener import SocketListener
from wire.transport.protocol import ByteProtocol
from wire.transport.specs import DialSpec, PortSpec
from wire.transport.tls import listener_context


class UpperEcho(ByteProtocol):
    """Sends each line of the peer back in capitals."""

    def begin(self) -> None:
        self.rest = b""
        self.transport.establish()

    def receive(self, data: bytes | memoryview) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.transport.write(b"".join(line.upper() + b"\n" for line in lines))


class Place:
    """A listener or connector with its log, and the protocol objects that it made."""

    def __init__(self, make: Callable[[], ByteProtocol]) -> None:
        self.log = Paper()
        self.io = IoContext(self.log.emit)
        self.protocols: list[Any] = []
        self.gone: list[str] = []
        self.changed = asyncio.Event()
        self._make = make

    def make(self) -> ByteProtocol:
        protocol: Any = self._make()
        protocol.on_gone = self._on_gone
        self.protocols.append(protocol)
        return protocol

    def _on_gone(self, reason: str) -> None:
        self.gone.append(reason)
        self.changed.set()

    async def wait(self, condition: Callable[[], Any]) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def end(self) -> None:
        """Let no connection outlive the test."""
        for protocol in self.protocols:
            protocol.transport.abort("the test ends")
        await self.wait(lambda: len(self.gone) == len(self.protocols))


@asynccontextmanager
async def listening(
    make: Callable[[], ByteProtocol] = UpperEcho, make_refusal: Callable[[], ByteProtocol] | None = None, **spec: Any
) -> AsyncIterator[Any]:
    place: Any = Place(make)
    place.listener = SocketListener(place.io, PortSpec("lines", LOOPBACK, 0, **spec), place.make, make_refusal)
    place.port = await place.listener.open()
    try:
        yield place
    finally:
        place.listener.close()
        await place.end()


@asynccontextmanager
async def dialing(port: int, make: Callable[[], ByteProtocol], **spec: Any) -> AsyncIterator[Any]:
    place: Any = Place(make)
    place.failed = []

    def on_failed(reason: str) -> None:
        place.failed.append(reason)
        place.changed.set()

    place.connector = Connector(place.io, DialSpec("up", LOOPBACK, port, **spec), place.make, on_failed)
    try:
        yield place
    finally:
        place.connector.stop()
        await place.end()


class Caller(ByteProtocol):
    """Sends one line, and keeps the answer."""

    def begin(self) -> None:
        self.answer = b""
        self.transport.establish()
        self.transport.write(b"hello\n")

    def receive(self, data: bytes | memoryview) -> None:
        self.answer += data
        self.on_answer()

    def on_answer(self) -> None:
        """Overridden by tests."""


def server_context(server: Certificate, *, is_mutual: bool) -> ssl.SSLContext:
    return listener_context(server.path, server.key_path, server.ca_path if is_mutual else None, is_required=is_mutual)


async def say(port: int, line: bytes, context: ssl.SSLContext | None = None, *, closes: bool = False) -> bytes:
    """Send ``line``; return the line of the answer, b"" if the server ends or resets the connection before."""
    try:
        reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=context)
        try:
            writer.write(line)
            return b"" if closes else await reader.readline()
        finally:
            writer.close()
    except OSError:
        return b""
