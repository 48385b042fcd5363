"""Do many handshakes at once leave turns of the event loop to others, and does each of them end as it would alone?"""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from mesh.certs import Certificate, NodeRequest, ensure_pki, issue_client
from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sites import LOOPBACK, exchange, reset_on_close, site
from mesh_tests.unit.wire.transport.places import listening, say, server_context
from wire.log_events import ConnectionOpened
from wire.sasl import SaslServerSettings
from wire.transport.handshake_slices import SLICE_S, HandshakeSlices
from wire.transport.log_events import ConnectionBug, ConnectionRefused
from wire.transport.tls import Role, client_context
from wire.transport.tls_session import TlsSession

pytestmark = pytest.mark.usefixtures("every_loop")

CROWD = 12


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return ensure_pki(tmp_path_factory.mktemp("pki"), "m", [NodeRequest("s", Role.ROUTER)])[0]


@pytest.fixture(scope="module")
def alice(server: Certificate) -> Certificate:
    return issue_client(Path(server.ca_path).parent, "alice")


def let_each_step_take_a_slice(handshakes: HandshakeSlices) -> None:
    ticks = itertools.count()
    handshakes._now = lambda: float(next(ticks))  # type: ignore[method-assign]


class Turns:
    """Counts the turns of the event loop; `noted` has the number of the turn of each call of `note`."""

    def __init__(self) -> None:
        self.noted: list[int] = []
        self.first = asyncio.Event()
        self._turn = 0
        self._loop = asyncio.get_running_loop()
        self._tick()

    def _tick(self) -> None:
        self._turn += 1
        self._loop.call_soon(self._tick)

    def note(self) -> None:
        self.noted.append(self._turn)
        self.first.set()


@pytest.fixture
def noted_steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that counts turns from now on, and notes the turn of each input of a TLS server."""

    def start() -> Turns:
        turns, receive = Turns(), TlsSession.receive

        def noting(self: TlsSession, data: bytes) -> bytes:
            if not self.is_ready:
                turns.note()
            return receive(self, data)

        monkeypatch.setattr(TlsSession, "receive", noting)
        return turns

    return start


def test_steps_run_at_once_while_the_turn_has_time_and_then_in_later_turns_in_order() -> None:
    async def scenario() -> None:
        clock, done = [0.0], []
        slices = HandshakeSlices(lambda: clock[0])

        def step(name: int) -> None:
            clock[0] += SLICE_S / 2
            done.append(name)

        ran = [slices.run(lambda number=number: step(number)) for number in range(7)]
        assert (ran, done) == ([True, True, *[False] * 5], [0, 1])
        for seen in ([0, 1, 2, 3], [0, 1, 2, 3, 4, 5], list(range(7))):
            await asyncio.sleep(0)
            assert done == seen
        assert slices.run(lambda: step(7))

    run(scenario)


def test_a_step_longer_than_a_slice_still_has_its_turn() -> None:
    async def scenario() -> None:
        ticks, done = itertools.count(), []
        slices = HandshakeSlices(lambda: next(ticks) * 10 * SLICE_S)
        for number in range(4):
            slices.run(lambda number=number: done.append(number))
        assert done == [0]
        for count in (2, 3, 4):
            await asyncio.sleep(0)
            assert done == list(range(count))

    run(scenario)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("is_mutual", [False, True])
def test_a_crowd_of_handshakes_takes_a_turn_each_and_all_succeed(
    server: Certificate, alice: Certificate, noted_steps: Any, version: ssl.TLSVersion, is_mutual: bool
) -> None:
    async def scenario() -> None:
        async with listening(tls=server_context(server, is_mutual=is_mutual)) as place:
            let_each_step_take_a_slice(place.io.handshakes)
            context = client_context(server.ca_path, alice.path, alice.key_path)
            context.maximum_version = version
            turns = noted_steps()
            said = await asyncio.gather(*(say(place.port, b"here\n", context) for _ in range(CROWD)))
            assert said == [b"HERE\n"] * CROWD
            # The clients' own inputs are not noted: asyncio's TLS is not `TlsSession`.
            assert len(turns.noted) >= 2 * CROWD
            assert len(set(turns.noted)) == len(turns.noted)
            users = {protocol.transport.identity and protocol.transport.identity.user for protocol in place.protocols}
            assert users == ({"alice"} if is_mutual else {None})

    run(scenario)


def test_an_open_connection_is_served_before_the_last_handshake_of_a_crowd(
    server: Certificate, noted_steps: Any
) -> None:
    async def scenario() -> None:
        async with listening(tls=server_context(server, is_mutual=False)) as place:
            context = client_context(server.ca_path)
            reader, writer = await asyncio.open_connection(LOOPBACK, place.port, ssl=context)
            writer.write(b"open\n")
            assert await reader.readline() == b"OPEN\n"
            let_each_step_take_a_slice(place.io.handshakes)
            turns = noted_steps()
            crowd = [asyncio.create_task(say(place.port, b"here\n", context)) for _ in range(CROWD)]
            await turns.first.wait()
            writer.write(b"between\n")
            assert await reader.readline() == b"BETWEEN\n"
            assert len(turns.noted) < 2 * CROWD
            assert await asyncio.gather(*crowd) == [b"HERE\n"] * CROWD
            writer.close()

    run(scenario)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_handshakes_that_fail_in_a_crowd_fail_alone_and_for_their_own_reason(
    server: Certificate, alice: Certificate, version: ssl.TLSVersion
) -> None:
    async def scenario() -> None:
        async with listening(tls=server_context(server, is_mutual=True)) as place:
            let_each_step_take_a_slice(place.io.handshakes)
            nameless, named = client_context(server.ca_path), client_context(server.ca_path, alice.path, alice.key_path)
            nameless.maximum_version = named.maximum_version = version
            contexts = [nameless, named] * (CROWD // 2)
            said = await asyncio.gather(*(say(place.port, b"here\n", context) for context in contexts))
            assert said == [b"", b"HERE\n"] * (CROWD // 2)
            refused = await place.log.wait_for(ConnectionRefused, CROWD // 2)
            assert {event.reason for event in refused} == {"TLS: peer did not return a certificate"}
            assert place.log.of(ConnectionBug) == []

    run(scenario)


def test_a_peer_that_stops_within_its_handshake_holds_up_nobody_and_is_closed_in_time(server: Certificate) -> None:
    async def scenario() -> None:
        async with listening(tls=server_context(server, is_mutual=False), handshake_timeout_s=0.5) as place:
            let_each_step_take_a_slice(place.io.handshakes)
            context = client_context(server.ca_path)
            hello = TlsSession(context, server_side=False, server_hostname=LOOPBACK).output()
            stalled = asyncio.create_task(exchange(place.port, hello[: len(hello) // 2]))
            said = await asyncio.gather(*(say(place.port, b"here\n", context) for _ in range(CROWD)))
            assert said == [b"HERE\n"] * CROWD
            assert await stalled == b""
            (refused,) = await place.log.wait_for(ConnectionRefused)
            assert refused.reason == "no TLS handshake within 0.5 s"

    run(scenario)


def test_peers_that_reset_while_their_input_waits_are_forgotten_without_a_bug(server: Certificate) -> None:
    async def scenario() -> None:
        async with listening(tls=server_context(server, is_mutual=False)) as place:
            let_each_step_take_a_slice(place.io.handshakes)
            context = client_context(server.ca_path)
            loop = asyncio.get_running_loop()
            for _ in range(CROWD):
                with socket.create_connection((LOOPBACK, place.port)) as sock:
                    sock.setblocking(False)
                    hello = TlsSession(context, server_side=False, server_hostname=LOOPBACK).output()
                    await loop.sock_sendall(sock, hello)
                    reset_on_close(sock)
            assert await say(place.port, b"here\n", context) == b"HERE\n"
            await place.wait(lambda: len(place.gone) >= CROWD)
            assert place.log.of(ConnectionBug) == []

    run(scenario)


def test_logins_without_tls_have_their_turns_too_and_lose_no_byte() -> None:
    async def scenario() -> None:
        async with site(sasl=SaslServerSettings(is_required=False)) as place, site("clients") as clients:
            let_each_step_take_a_slice(place.driver._io.handshakes)
            for _ in range(3):
                clients.dial(place.port)
                await place.log.wait_for(ConnectionOpened, len(place.node.opened) + 1)
            assert len(place.node.opened) == 3

    run(scenario)


def test_a_shutdown_ends_connections_that_wait_for_the_start_of_their_handshake(server: Certificate) -> None:
    async def scenario() -> None:
        async with site(tls=server_context(server, is_mutual=False)) as place:
            loop = asyncio.get_running_loop()
            # Until the driver is closed, the handshakes have no time at all.
            place.driver._io.handshakes._used_s = SLICE_S
            socks = [socket.create_connection((LOOPBACK, place.port)) for _ in range(CROWD)]
            while place.driver.snapshot().connection_count < CROWD:
                await asyncio.sleep(0)
                place.driver._io.handshakes._used_s = SLICE_S
            await place.driver.close(grace_s=1.0)
            assert place.driver.snapshot().connection_count == 0
            for sock in socks:
                sock.setblocking(False)
                assert await loop.sock_recv(sock, 10) == b""
                sock.close()

    run(scenario)
