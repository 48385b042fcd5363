"""Damaged AMQP over real sockets: each connection ends soon, once, and with one line; nothing else suffers."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest

from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sites import LOOPBACK, site
from wire.endpoint import Endpoint, EndpointSettings
from wire.log_events import ConnectionClosed, ConnectionLost
from wire.terminus import source, target
from wire.transport.log_events import ConnectionRefused

pytestmark = pytest.mark.usefixtures("every_loop")

CONNECTIONS = 100


def healthy() -> bytes:
    """What a client with three links in each direction sends first."""
    endpoint = Endpoint(EndpointSettings("client"))
    endpoint.open()
    session = endpoint.begin()
    for count in range(3):
        for link in (session.sender(f"out{count}"), session.receiver(f"in{count}")):
            link.set_source(source("a"))
            link.set_target(target("b"))
            link.open()
    data = b"".join(iter(endpoint.output, b""))
    endpoint.free()
    return data


def damaged(data: bytes, chance: random.Random) -> bytes:
    # The protocol header stays whole: what comes without it does not reach AMQP.
    header, body = data[:8], bytearray(data[8:])
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(max(1, len(body)))
        match chance.randrange(4):
            case 0:
                body[at : at + 1] = chance.randbytes(1)
            case 1:
                del body[at : at + chance.randint(1, 8)]
            case 2:
                body[at:at] = chance.randbytes(chance.randint(1, 8))
            case 3:
                del body[at:]
    return header + bytes(body)


async def visit(port: int, data: bytes, *, closes: bool) -> None:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    with contextlib.suppress(OSError):
        writer.write(data)
        if closes:
            writer.write_eof()
        await reader.read()
    writer.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_damage_ends_a_connection_soon_and_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wire.transport.connection.LINGER_S", 0.1)
    chance = random.Random(seed)
    data = healthy()

    async def scenario() -> None:
        async with site(handshake_timeout_s=0.5) as server:
            server.node.settings = EndpointSettings("server", idle_timeout_s=1.0)
            visits = (
                visit(server.port, damaged(data, chance), closes=chance.random() < 0.5) for _ in range(CONNECTIONS)
            )
            async with asyncio.timeout(10):
                await asyncio.gather(*visits)
        ended = [event for event in server.log.events if isinstance(event, ConnectionLost | ConnectionClosed)]
        assert len(ended) + len(server.log.of(ConnectionRefused)) == CONNECTIONS

    run(scenario)
