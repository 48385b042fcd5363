"""When does a driver dial, and when again?"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sites import LOOPBACK, reset_on_close, site
from wire.log_events import ConnectionClosed, ConnectionLost, ConnectorUp, LoopTrouble
from wire.node import Abort, ConnectorSpec, DropConnector, OpenConnector
from wire.sasl import SaslClientSettings
from wire.transport import connector
from wire.transport.connection import SocketConnection
from wire.transport.log_events import ConnectionBug, ConnectorDown

pytestmark = pytest.mark.usefixtures("every_loop")


def test_a_connector_tries_at_once_and_again_and_tells_each_reason_once() -> None:
    async def scenario() -> None:
        with socket.socket() as unused:
            unused.bind((LOOPBACK, 0))
            port = unused.getsockname()[1]
        async with site("client") as client:
            client.dial(port, backoff_min_s=0.02, backoff_max_s=0.05)
            await client.node.wait(lambda: len(client.node.failed) >= 4)
            assert client.node.failed[0] == ("up", "cannot connect: connection refused")
            (down,) = client.log.of(ConnectorDown)
            assert down.reason == "cannot connect: connection refused"
            snapshot = client.driver.snapshot().connectors[0]
            assert (snapshot.is_up, snapshot.down_reason) == (False, down.reason)
            async with site("server") as server:
                client.dial(server.port)
                await client.log.wait_for(ConnectorUp)
                assert client.driver.snapshot().connectors[0].is_up

    run(scenario)


class Ends(asyncio.Protocol):
    """Ends each connection before anything was said."""

    def connection_made(self, transport: Any) -> None:
        transport.close()


def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Take the pauses of connectors away, and return the list that notes them."""
    noted: list[float] = []
    sleep = asyncio.sleep

    async def note(pause_s: float) -> None:
        noted.append(pause_s)
        await sleep(0)

    monkeypatch.setattr(connector.asyncio, "sleep", note)
    monkeypatch.setattr(connector.random, "uniform", lambda least, most: most)
    return noted


def test_the_pause_before_an_absent_peer_is_dialed_again_stays_short(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = pauses(monkeypatch)

    async def scenario() -> None:
        with socket.socket() as unused:
            unused.bind((LOOPBACK, 0))
            async with site("client") as client:
                client.dial(unused.getsockname()[1])
                await client.node.wait(lambda: len(noted) >= 7)

    run(scenario)
    assert noted[:7] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


def test_the_pause_before_a_peer_that_refuses_is_dialed_again_grows_on(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = pauses(monkeypatch)

    async def scenario() -> None:
        server = await asyncio.get_running_loop().create_server(Ends, LOOPBACK, 0)
        async with server, site("client") as client:
            client.dial(server.sockets[0].getsockname()[1])
            await client.node.wait(lambda: len(noted) >= 8)

    run(scenario)
    assert noted[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_a_peer_that_dies_again_and_again_is_dialed_soon_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time the connection is up, and then lost; attempts fail until the peer is there again."""
    noted = pauses(monkeypatch)

    async def scenario() -> None:
        async with site("server") as server, site("client") as client:
            client.dial(server.port)
            for life in range(1, 7):
                await server.node.wait(lambda life=life: len(server.node.opened) == life)
                server.node.commands.append(Abort(server.node.endpoints[-1], "killed"))
                server.driver.wake()
                await client.node.wait(lambda life=life: len(client.node.disconnected) == life)
            await client.node.wait(lambda: len(noted) >= 6)

    run(scenario)
    assert noted[:6] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@pytest.mark.parametrize("ends", ["it dials no more", "it is stopped", "the driver closes"])
def test_a_connection_that_is_given_up_in_the_moment_it_is_made_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    make = SocketConnection.connection_made

    def make_and_give_up(connection: SocketConnection, transport: asyncio.BaseTransport) -> None:
        make(connection, transport)
        if not connection._terms.is_dialed:
            return
        connector = client.driver._connectors["up"]
        if ends == "it dials no more":
            connector.stop_dialing()
        elif ends == "it is stopped":
            connector.stop()
        else:
            closing.append(asyncio.ensure_future(client.driver.close(grace_s=1.0)))

    closing: list[asyncio.Future[None]] = []
    monkeypatch.setattr(SocketConnection, "connection_made", make_and_give_up)

    async def scenario() -> None:
        nonlocal client
        async with site("server") as server, site("client") as client:
            client.dial(server.port)
            await client.node.wait(lambda: client.node.disconnected or client.node.failed)
            await client.driver.close(grace_s=1.0)
            assert client.driver.snapshot().connection_count == 0

    client: Any = None
    run(scenario)


class RudeWebServer(asyncio.Protocol):
    """Answers whatever it is sent, and resets the connection before anybody can have read the answer."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        reset_on_close(self._transport.get_extra_info("socket"))
        self._transport.abort()


@pytest.mark.parametrize("sasl", [None, SaslClientSettings()])
def test_a_web_server_that_answers_and_resets_is_a_reason_to_dial_later(sasl: SaslClientSettings | None) -> None:
    async def scenario() -> None:
        server = await asyncio.get_running_loop().create_server(RudeWebServer, LOOPBACK, 0)
        async with server, site("client") as client:
            client.dial(server.sockets[0].getsockname()[1], sasl=sasl, backoff_min_s=0.02, backoff_max_s=0.05)
            await client.node.wait(lambda: len(client.node.failed) + len(client.node.disconnected) >= 3)
        assert client.log.of(ConnectionBug) == []
        (down,) = client.log.of(ConnectorDown)
        assert "HTTP" in down.reason

    run(scenario)


def test_a_lost_connection_is_dialed_again() -> None:
    async def scenario() -> None:
        async with site("server") as server, site("client") as client:
            client.dial(server.port, backoff_min_s=0.02)
            await server.node.wait(lambda: server.node.opened)
            server.node.commands.append(Abort(server.node.endpoints[0], "a test"))
            server.driver.wake()
            await client.node.wait(lambda: len(client.node.opened) == 2)
            assert len(client.node.disconnected) == 1
            assert [lost.reason for lost in server.log.of(ConnectionLost)] == ["a test"]

    run(scenario)


def test_commands_open_and_drop_a_connector() -> None:
    async def scenario() -> None:
        async with site("server") as server, site("client") as client:
            client.node.commands.append(OpenConnector(ConnectorSpec("up", LOOPBACK, server.port)))
            client.driver.wake()
            await client.node.wait(lambda: client.node.opened)
            client.node.commands.append(DropConnector("up"))
            client.driver.wake()
            await client.node.wait(lambda: client.node.disconnected)
            assert client.driver.snapshot().connectors == ()
            (closed,) = await server.log.wait_for(ConnectionClosed)
            assert closed.reason == "closed"

    run(scenario)


def test_a_connector_may_be_dropped_for_the_very_attempt_that_failed() -> None:
    """As a router does with the connection of a client: the loop has nothing to complain of."""

    async def scenario() -> None:
        async with site("client") as client:
            server = await asyncio.get_running_loop().create_server(RudeWebServer, LOOPBACK, 0)
            port = server.sockets[0].getsockname()[1]
            fail = client.node.on_connect_failed

            def drop(connector: str, reason: str, now: float) -> None:
                client.node.commands.append(DropConnector(connector))
                fail(connector, reason, now)

            client.node.on_connect_failed = drop  # type: ignore[method-assign]
            client.dial(port, sasl=SaslClientSettings())
            await client.node.wait(lambda: client.node.failed)
            await asyncio.sleep(0)
            assert client.log.of(LoopTrouble) == []
            assert client.driver.snapshot().connectors == ()
            server.close()

    run(scenario)
