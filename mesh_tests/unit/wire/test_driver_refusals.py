"""Who is not let in by a listener: what is it told, and what does the log say?"""

from __future__ import annotations

import time

import pytest

from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sasl.secrets import USERS
from mesh_tests.unit.wire.sites import exchange, plain_client_bytes, site
from wire.sasl import SaslClientSettings, SaslServerSettings
from wire.sasl.headers import AMQP, SASL
from wire.transport.log_events import ConnectionRefused

pytestmark = pytest.mark.usefixtures("every_loop")


@pytest.mark.parametrize("is_required", [False, True])
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "not AMQP 1.0: HTTP: GET / HTTP/1.1"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), "not AMQP 1.0: a TLS ClientHello"),
        (b"\x8f\x00\x12random bytes", "not AMQP 1.0: 15 bytes that begin 8f 00 12"),
    ],
)
def test_another_protocol_gets_our_header_and_a_line_in_the_log(data: bytes, reason: str, is_required: bool) -> None:
    async def scenario() -> None:
        async with site(sasl=SaslServerSettings(USERS, is_required=is_required)) as server:
            assert await exchange(server.port, data) == (SASL if is_required else AMQP)
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert refused.reason.startswith(reason)
            assert server.node.endpoints == []

    run(scenario)


def test_a_port_scan_leaves_one_line() -> None:
    async def scenario() -> None:
        async with site() as server:
            assert await exchange(server.port, b"", closes=True) == b""
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert refused.reason == "the peer closed the socket while we waited for protocol header, after nothing"

    run(scenario)


@pytest.mark.parametrize(
    ("data", "waited_for"),
    [
        (b"", "protocol header, after nothing"),
        (b"AMQ", "protocol header, after 3 bytes that begin 41 4d 51"),
        (SASL, "sasl-init"),
        (AMQP, "open frame"),
    ],
)
def test_a_silent_connection_is_closed_in_time(data: bytes, waited_for: str) -> None:
    async def scenario() -> None:
        async with site(handshake_timeout_s=0.2) as server:
            answer = await exchange(server.port, data)
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert refused.reason == f"no {waited_for} within 0.2 s"
            assert answer[:8] == {SASL: SASL, AMQP: AMQP}.get(data, b"")

    run(scenario)


def test_a_wrong_password_is_slow_and_leaves_one_line() -> None:
    async def scenario() -> None:
        async with site(sasl=SaslServerSettings(USERS, is_required=True)) as server, site("client") as client:
            started = time.monotonic()
            client.dial(server.port, sasl=SaslClientSettings("alice", "guess", mechanisms=("PLAIN",)))
            await client.node.wait(lambda: client.node.failed)
            assert client.node.failed == [("up", "authentication failed (PLAIN as 'alice')")]
            assert time.monotonic() - started > 0.4
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert refused.reason == "user 'alice': wrong user or password"

    run(scenario)


def test_over_the_limit_there_is_an_open_and_a_close_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wire.amqp_connection.CLOSE_TIMEOUT_S", 0.1)

    async def scenario() -> None:
        async with site(max_connections=1) as server, site("client") as client:
            client.dial(server.port)
            await server.node.wait(lambda: server.node.opened)
            answer = await exchange(server.port, plain_client_bytes())
            assert b"amqp:resource-limit-exceeded" in answer
            (refused,) = await server.log.wait_for(ConnectionRefused)
            assert "this listener allows at most 1 connections" in refused.reason
            assert len(server.node.endpoints) == 1
            await client.driver.close()
            await server.node.wait(lambda: server.node.disconnected)
            assert AMQP in await exchange(server.port, plain_client_bytes(), closes=True)
            assert len(server.node.endpoints) == 2

    run(scenario)
