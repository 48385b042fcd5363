"""The driver over real sockets on loopback."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest

from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sasl.secrets import USERS
from mesh_tests.unit.wire.sites import LOOPBACK, exchange, plain_client_bytes, reset_on_close, site
from wire.driver import BindError
from wire.endpoint import Endpoint, EndpointSettings
from wire.log_events import ConnectionClosed, ConnectionLost, ConnectionOpened, ConnectorUp, NodeBug
from wire.node import Abort, ListenerSpec
from wire.sasl import SaslClientSettings, SaslServerSettings
from wire.sasl.frames import SaslOutcome, take_frame
from wire.sasl.headers import AMQP, SASL
from wire.transport.connection import SocketConnection
from wire.transport.log_events import ConnectionBug, ConnectionRefused

pytestmark = pytest.mark.usefixtures("every_loop")


@pytest.mark.parametrize("sasl", [None, SaslClientSettings(), SaslClientSettings("alice", "wonder")])
def test_a_connector_and_a_listener_open_and_close_in_order(sasl: SaslClientSettings | None) -> None:
    async def scenario() -> None:
        async with site("server", sasl=SaslServerSettings(USERS)) as server, site("client") as client:
            client.dial(server.port, sasl=sasl)
            await client.node.wait(lambda: client.node.opened)
            await server.node.wait(lambda: server.node.opened)
            assert client.node.opened[0].remote.container_id == "server"  # type: ignore[union-attr]
            assert server.node.peers[0].user == (sasl.user if sasl is not None else None)
            await client.driver.close()
            await server.node.wait(lambda: server.node.disconnected)
        (opened,) = server.log.of(ConnectionOpened)
        assert opened.mechanism == (sasl and sasl.usable_mechanisms[0])
        (closed,) = server.log.of(ConnectionClosed)
        assert closed.reason == "closed by the peer: amqp:connection:forced: client shuts down"
        assert client.log.of(ConnectorUp)[0].container_id == "server"

    run(scenario)


def test_clients_are_closed_while_what_serves_them_is_still_up() -> None:
    async def scenario() -> None:
        async with site("broker") as broker, site("router") as router, site("client") as client:
            router.dial(broker.port)
            await broker.node.wait(lambda: broker.node.opened)
            (to_broker,) = router.node.endpoints
            client.dial(router.port)
            await client.node.wait(lambda: client.node.opened)
            to_client = router.node.endpoints[1]

            was_broker_open: list[bool] = []
            router.node.on_gone = lambda: was_broker_open.append(to_broker.is_open)
            await router.driver.close()
            assert [endpoint for endpoint, _ in router.node.disconnected] == [to_client, to_broker]
            assert was_broker_open == [True, False]
            assert [str(error) for error in client.node.closed] == ["amqp:connection:forced: router shuts down"]

    run(scenario)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x00\x00\x00\x03\x02\x00\x00\x00" + bytes(20), "amqp:connection:framing-error"),
        (b"\x7f\xff\xff\xff\x02\x00\x00\x00" + bytes(20), "amqp:connection:framing-error"),
        (b"\x00\x00\x00\x10\x02\x00\x00\x00\xde\xad\xbe\xef\xde\xad\xbe\xef", "amqp:decode-error"),
    ],
)
def test_a_bad_frame_is_answered_with_an_error_and_hurts_nobody_else(data: bytes, complaint: str) -> None:
    async def scenario() -> None:
        async with site() as server, site("client") as client:
            client.dial(server.port)
            await server.node.wait(lambda: server.node.opened)
            answer = await exchange(server.port, plain_client_bytes() + data)
            assert complaint.encode() in answer
            (lost,) = await server.log.wait_for(ConnectionLost)
            assert lost.reason.startswith(complaint)
            assert len(server.node.disconnected) == 1
            assert client.node.disconnected == []

    run(scenario)


def test_a_peer_that_vanishes_is_one_disconnect() -> None:
    async def scenario() -> None:
        async with site() as server:
            await exchange(server.port, plain_client_bytes(), closes=True)
            await server.node.wait(lambda: server.node.disconnected)
            (lost,) = await server.log.wait_for(ConnectionLost)
            assert lost.reason == "the peer closed the socket without closing the connection"

    run(scenario)


def test_a_truncated_frame_is_answered_at_once() -> None:
    async def scenario() -> None:
        async with site() as server:
            answer = await exchange(server.port, plain_client_bytes() + b"\x00\x00\x00\x20\x02", closes=True)
            assert b"amqp:connection:framing-error" in answer
            assert b"in the middle of a frame" in answer
            await server.log.wait_for(ConnectionLost)

    run(scenario)


def test_a_reset_is_one_disconnect_with_its_reason() -> None:
    async def scenario() -> None:
        async with site() as server:
            loop = asyncio.get_running_loop()
            with socket.create_connection((LOOPBACK, server.port)) as sock:
                sock.setblocking(False)
                await loop.sock_sendall(sock, plain_client_bytes())
                await server.node.wait(lambda: server.node.opened)
                reset_on_close(sock)
            await server.node.wait(lambda: server.node.disconnected)
            (lost,) = await server.log.wait_for(ConnectionLost)
            assert lost.reason == "connection reset by peer"

    run(scenario)


def test_a_fault_in_the_node_drops_that_connection_only() -> None:
    async def scenario() -> None:
        def stumble(link: Any) -> None:
            raise RuntimeError("stumbled")

        async with site(has_bugs=True) as server, site("good") as good, site("bad") as bad:
            good.dial(server.port)
            await server.node.wait(lambda: server.node.opened)
            server.node.on_link = stumble
            bad.dial(server.port)
            await bad.node.wait(lambda: bad.node.opened)
            bad.node.opened[0].begin().sender("x").open()
            bad.driver.wake()
            (bug,) = await server.log.wait_for(ConnectionBug)
            assert "stumbled" in bug.error
            assert "in stumble" in bug.traceback
            await server.node.wait(lambda: server.node.disconnected)
            assert len(server.node.disconnected) == 1
            # The peer hears that an error, and not a lost socket, ended the connection.
            await bad.node.wait(lambda: bad.node.closed)
            assert [error.condition for error in bad.node.closed] == ["amqp:internal-error"]
            assert good.node.disconnected == []

    run(scenario)


def test_the_timer_fires_at_the_nodes_deadline() -> None:
    async def scenario() -> None:
        async with site() as server:
            deadline = server.node.deadline = server.driver.now() + 0.05
            server.driver.wake()
            await server.node.wait(lambda: server.node.times)
            assert server.node.times[0] >= deadline - 0.002

    run(scenario)


def test_a_fault_in_on_time_is_told_and_does_not_spin() -> None:
    async def scenario() -> None:
        def stumble(now: float) -> None:
            raise RuntimeError("stumbled")

        async with site() as server:
            server.node.on_time = stumble  # type: ignore[method-assign]
            server.node.deadline = server.driver.now()
            server.driver.wake()
            await server.log.wait_for(NodeBug)
            await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0.1)
            assert len(server.log.of(NodeBug)) == 1

    run(scenario)


def test_output_stops_at_a_peer_that_does_not_read_and_goes_on_when_it_does() -> None:
    async def scenario() -> None:
        async with site() as server:
            loop = asyncio.get_running_loop()
            with socket.socket() as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.setblocking(False)
                await loop.sock_connect(sock, (LOOPBACK, server.port))
                await loop.sock_sendall(sock, plain_client_bytes())
                await server.node.wait(lambda: server.node.opened)
                (endpoint,) = server.node.endpoints
                session = endpoint.begin()
                count = 0
                while not endpoint.is_output_blocked:
                    session.sender("x" * 1000 + str(count)).open()
                    server.driver.wake()
                    count += 1
                assert count < 10_000
                while not server.node.writable:
                    await loop.sock_recv(sock, 65536)
                assert not endpoint.is_output_blocked

    run(scenario)


def test_a_peer_that_never_answers_the_close_is_aborted_after_the_grace() -> None:
    async def scenario() -> None:
        async with site() as server:
            _reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
            writer.write(plain_client_bytes())
            await server.node.wait(lambda: server.node.opened)
            started = time.monotonic()
            await server.driver.close(grace_s=0.6)
            assert 0.25 < time.monotonic() - started < 2
            assert [reason for _, reason in server.node.disconnected] == ["shut down"]
            writer.close()

    run(scenario)


def test_a_peer_that_closes_and_keeps_its_socket_is_gone_for_the_node_at_once() -> None:
    async def scenario() -> None:
        async with site("server") as server:
            peer = Endpoint(EndpointSettings("peer"))
            peer.open()
            reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
            writer.write(peer.output())
            while not peer.is_open:
                peer.receive(await reader.read(1000))
                peer.drain(server.node)
            peer.close()
            writer.write(peer.output())
            await server.node.wait(lambda: server.node.disconnected, 0.5)
            assert server.node.disconnected[0][0].is_freed
            assert server.driver.snapshot().connection_count == 1, "the socket lingers"
            # What still comes is discarded, and the peer has the answer to read.
            writer.write(b"more")
            assert await reader.read(1000)
            writer.close()
            await server.log.wait_for(ConnectionClosed)

    run(scenario)


def test_a_close_meets_a_peer_that_has_just_reset_the_connection() -> None:
    async def scenario() -> None:
        async with site() as server:
            loop = asyncio.get_running_loop()
            with socket.create_connection((LOOPBACK, server.port)) as sock:
                sock.setblocking(False)
                await loop.sock_sendall(sock, SASL)
                assert await loop.sock_recv(sock, 1000)
                reset_on_close(sock)
            # The event loop does not know of the reset yet.
            await server.driver.close()
            (refused,) = server.log.of(ConnectionRefused)
            assert refused.reason == "closed by us"

    run(scenario)


async def read_to_end(sock: socket.socket) -> None:
    while await asyncio.get_running_loop().sock_recv(sock, 65536):
        pass


def test_what_a_connection_that_its_node_aborts_had_to_send_is_forgotten() -> None:
    async def scenario() -> None:
        async with site() as server:
            loop = asyncio.get_running_loop()
            with socket.create_connection((LOOPBACK, server.port)) as sock:
                sock.setblocking(False)
                await loop.sock_sendall(sock, plain_client_bytes())
                await server.node.wait(lambda: server.node.opened)
                (endpoint,) = server.node.endpoints
                session = endpoint.begin()
                while not endpoint.is_output_blocked:
                    session.sender(f"{len(endpoint.links)}{'x' * 1000}").open()
                    server.driver.wake()
                server.node.commands.append(Abort(endpoint, "silent"))
                server.driver.wake()
                await server.node.wait(lambda: server.node.disconnected)
                with pytest.raises(ConnectionResetError):
                    await read_to_end(sock)

    run(scenario)


def test_an_idle_peer_is_closed_after_the_idle_timeout() -> None:
    async def scenario() -> None:
        async with site() as server:
            server.node.settings = EndpointSettings("server", idle_timeout_s=0.2)
            answer = await exchange(server.port, plain_client_bytes())
            assert b"the peer sent nothing for 0.2 s" in answer
            (lost,) = await server.log.wait_for(ConnectionLost)
            assert "idle" in lost.reason

    run(scenario)


def test_a_port_in_use_is_named() -> None:
    async def scenario() -> None:
        async with site() as server:
            with pytest.raises(BindError) as raised:
                await server.driver.listen(ListenerSpec("second", LOOPBACK, server.port))
            expected = f"listener second cannot use {LOOPBACK}:{server.port}: address already in use"
            assert str(raised.value) == expected

    run(scenario)


def test_the_end_of_a_login_and_the_header_of_amqp_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    write = SocketConnection.write

    def note(connection: SocketConnection, data: bytes) -> None:
        written.append(data)
        write(connection, data)

    async def scenario() -> None:
        async with site("server", sasl=SaslServerSettings(USERS)) as server, site("client") as client:
            monkeypatch.setattr(SocketConnection, "write", note)
            client.dial(server.port, sasl=SaslClientSettings("alice", "wonder"))
            await client.node.wait(lambda: client.node.opened)

    run(scenario)
    (outcome,) = [data for data in written if AMQP in data and not data.startswith(AMQP)]
    assert isinstance(take_frame(bytearray(outcome)), SaslOutcome)
