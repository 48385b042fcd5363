"""Does a protocol that is not AMQP run over the connections of `wire.transport`, with TLS and all limits?"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
from pathlib import Path

import pytest

from mesh.certs import Certificate, NodeRequest, ensure_pki, issue_client
from mesh_tests.unit.wire.loops import run
from mesh_tests.unit.wire.sites import LOOPBACK, exchange, reset_on_close
from mesh_tests.unit.wire.transport.places import Caller, UpperEcho, dialing, listening, say, server_context
from wire.transport.listener import BindError, SocketListener
from wire.transport.log_events import ConnectionBug, ConnectionRefused, ConnectorDown, ListenerOpened
from wire.transport.protocol import ByteProtocol
from wire.transport.specs import PortSpec
from wire.transport.tls import Role, client_context

pytestmark = pytest.mark.usefixtures("every_loop")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return ensure_pki(tmp_path_factory.mktemp("pki"), "m", [NodeRequest("s", Role.ROUTER)])[0]


@pytest.fixture(scope="module")
def alice(server: Certificate) -> Certificate:
    return issue_client(Path(server.ca_path).parent, "alice")


def test_a_protocol_of_ten_lines_runs_on_a_plain_listener() -> None:
    async def scenario() -> None:
        async with listening() as place:
            assert await say(place.port, b"one and the same\n") == b"ONE AND THE SAME\n"
            assert [event.tls for event in place.log.of(ListenerOpened)] == [False]
            await place.wait(lambda: place.gone)
            assert place.gone == ["the peer closed the socket"]
            assert len(place.log.events) == 1

    run(scenario)


def test_the_same_protocol_runs_over_tls_of_the_server(server: Certificate) -> None:
    async def scenario() -> None:
        async with listening(tls=server_context(server, is_mutual=False)) as place:
            assert await say(place.port, b"secret\n", client_context(server.ca_path)) == b"SECRET\n"
            (protocol,) = place.protocols
            assert protocol.transport.is_encrypted
            assert protocol.transport.identity is None

    run(scenario)


def test_over_mutual_tls_a_protocol_knows_the_name_in_the_certificate(server: Certificate, alice: Certificate) -> None:
    async def scenario() -> None:
        async with listening(tls=server_context(server, is_mutual=True)) as place:
            context = client_context(server.ca_path, alice.path, alice.key_path)
            assert await say(place.port, b"secret\n", context) == b"SECRET\n"
            (protocol,) = place.protocols
            assert protocol.transport.identity.user == "alice"

    run(scenario)


def test_without_a_certificate_mutual_tls_refuses_and_no_byte_reaches_the_protocol(server: Certificate) -> None:
    async def scenario() -> None:
        async with listening(tls=server_context(server, is_mutual=True)) as place:
            assert await say(place.port, b"secret\n", client_context(server.ca_path)) == b""
            (refused,) = await place.log.wait_for(ConnectionRefused)
            assert refused.reason == "TLS: peer did not return a certificate"
            assert not hasattr(place.protocols[0], "rest")

    run(scenario)


def test_another_protocol_on_a_tls_port_is_named(server: Certificate) -> None:
    async def scenario() -> None:
        async with listening(tls=server_context(server, is_mutual=False)) as place:
            await exchange(place.port, b"GET / HTTP/1.1\r\n\r\n")
            (refused,) = await place.log.wait_for(ConnectionRefused)
            assert refused.reason == "not TLS: HTTP: GET / HTTP/1.1"

    run(scenario)


def test_over_the_limit_a_connection_is_dropped_and_logged() -> None:
    async def scenario() -> None:
        async with listening(max_connections=1) as place:
            reader, writer = await asyncio.open_connection(LOOPBACK, place.port)
            writer.write(b"a\n")
            assert await reader.readline() == b"A\n"
            assert await say(place.port, b"b\n") == b""
            (refused,) = await place.log.wait_for(ConnectionRefused)
            assert refused.reason == "over 1 connections"
            snapshot = place.listener.snapshot()
            assert (snapshot.connection_count, snapshot.refused_count) == (1, 1)
            writer.close()
            await place.wait(lambda: place.gone)
            assert await say(place.port, b"c\n") == b"C\n"

    run(scenario)


class Busy(ByteProtocol):
    """Tells a peer over the limit why."""

    def begin(self) -> None:
        self.transport.fail("too many", b"busy\n")


def test_over_the_limit_a_protocol_can_tell_the_peer_why() -> None:
    async def scenario() -> None:
        async with listening(make_refusal=Busy, max_connections=0) as place:
            assert await exchange(place.port, b"") == b"busy\n"
            (refused,) = await place.log.wait_for(ConnectionRefused)
            assert refused.reason == "too many"

    run(scenario)


class Login(UpperEcho):
    """Waits for a line with a name before it establishes the connection."""

    @property
    def awaited(self) -> str:
        return "name"

    def begin(self) -> None:
        self.rest = b""
        self.is_known = False

    def receive(self, data: bytes | memoryview) -> None:
        if self.is_known:
            super().receive(data)
        elif bytes(data) == b"alice\n":
            self.is_known = True
            self.transport.establish()
        else:
            self.transport.fail("no such name", b"who?\n", delay_s=0.05)


@pytest.mark.parametrize("is_mutual", [None, False])
def test_a_handshake_of_the_protocol_has_its_time(server: Certificate, is_mutual: bool | None) -> None:
    async def scenario() -> None:
        tls = None if is_mutual is None else server_context(server, is_mutual=is_mutual)
        async with listening(Login, handshake_timeout_s=0.2, tls=tls) as place:
            context = None if tls is None else client_context(server.ca_path)
            reader, writer = await asyncio.open_connection(LOOPBACK, place.port, ssl=context)
            assert await reader.read() == b""
            writer.close()
            (refused,) = await place.log.wait_for(ConnectionRefused)
            assert refused.reason == "no name within 0.2 s"

    run(scenario)


def test_a_handshake_of_tls_has_the_same_time(server: Certificate) -> None:
    async def scenario() -> None:
        async with listening(handshake_timeout_s=0.1, tls=server_context(server, is_mutual=False)) as place:
            assert await exchange(place.port, b"") == b""
            (refused,) = await place.log.wait_for(ConnectionRefused)
            assert refused.reason == "no TLS handshake within 0.1 s"

    run(scenario)


def test_an_established_connection_has_no_time_limit() -> None:
    async def scenario() -> None:
        async with listening(Login, handshake_timeout_s=0.1) as place:
            reader, writer = await asyncio.open_connection(LOOPBACK, place.port)
            writer.write(b"alice\n")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await reader.read()
            writer.write(b"still here\n")
            assert await reader.readline() == b"STILL HERE\n"
            writer.close()

    run(scenario)


@pytest.mark.parametrize("is_mutual", [None, False])
def test_a_failed_login_gets_its_last_words(server: Certificate, is_mutual: bool | None) -> None:
    async def scenario() -> None:
        tls = None if is_mutual is None else server_context(server, is_mutual=is_mutual)
        async with listening(Login, tls=tls) as place:
            context = None if tls is None else client_context(server.ca_path)
            assert await say(place.port, b"mallory\n", context) == b"who?\n"
            (refused,) = await place.log.wait_for(ConnectionRefused)
            assert refused.reason == "no such name"

    run(scenario)


def test_a_peer_that_goes_during_its_login_leaves_the_name_of_what_was_awaited() -> None:
    async def scenario() -> None:
        async with listening(Login) as place:
            await exchange(place.port, b"", closes=True)
            (refused,) = await place.log.wait_for(ConnectionRefused)
            assert refused.reason == "the peer closed the socket while we waited for name"

    run(scenario)


CHUNK = b"x" * 65536
CHUNKS = 256


class Flood(ByteProtocol):
    """Sends 16 MiB, as fast as the peer reads."""

    is_finished = False

    def begin(self) -> None:
        self.left = CHUNKS
        self.pauses = 0
        self.transport.establish()
        self.transport.write_from(self)
        self.end_if_done()

    def output(self) -> bytes:
        if not self.left:
            return b""
        self.left -= 1
        return CHUNK

    def send_to(self, number: int) -> bytes:
        while data := self.output():
            try:
                sent = os.write(number, data)
            except BlockingIOError:
                sent = 0
            if sent < len(data):
                return data[sent:]
        return b""

    def pause_output(self) -> None:
        self.pauses += 1
        self.on_pause()

    def on_pause(self) -> None:
        """Overridden by tests."""

    def resume_output(self) -> None:
        self.transport.write_from(self)
        self.end_if_done()

    def end_if_done(self) -> None:
        if not self.left and not self.transport.is_output_paused:
            self.transport.end("done")


def read_late(port: int, context: ssl.SSLContext | None, paused: threading.Event) -> int:
    """Read nothing before the server's output is paused; return the number of bytes then.

    With a blocking socket: uvloop loses the last bytes of a TLS connection while its stream is paused.
    """
    with socket.create_connection((LOOPBACK, port), timeout=10) as plain:
        peer = plain if context is None else context.wrap_socket(plain, server_hostname=LOOPBACK)
        with peer:
            assert paused.wait(10)
            return sum(map(len, iter(lambda: peer.recv(1 << 16), b"")))


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_a_peer_that_does_not_read_pauses_the_output_and_gets_all_of_it_later(
    server: Certificate, is_encrypted: bool
) -> None:
    async def scenario() -> None:
        tls = server_context(server, is_mutual=False) if is_encrypted else None
        async with listening(Flood, tls=tls) as place:
            context = client_context(server.ca_path) if is_encrypted else None
            paused = threading.Event()
            Flood.on_pause = lambda protocol: paused.set()  # type: ignore[method-assign]
            reading = asyncio.ensure_future(asyncio.to_thread(read_late, place.port, context, paused))
            assert await reading == CHUNKS * len(CHUNK)
            assert place.protocols[0].pauses > 0
            await place.wait(lambda: place.gone)
            assert place.gone == ["done"]

    run(scenario)


class Hesitant(Flood):
    """Writes nothing itself, as if the socket were full each time, and has room again a moment later."""

    def send_to(self, number: int) -> bytes:
        return self.output()


def test_output_goes_on_when_the_socket_takes_the_rest_at_once() -> None:
    async def scenario() -> None:
        async with listening(Hesitant) as place:
            assert len(await exchange(place.port, b"")) == CHUNKS * len(CHUNK)

    run(scenario)


class Farewell(UpperEcho):
    def receive_eof(self) -> None:
        self.transport.write(self.rest.upper())
        self.transport.end("said farewell")


def test_at_the_end_of_the_peers_bytes_a_protocol_still_answers() -> None:
    async def scenario() -> None:
        async with listening(Farewell) as place:
            assert await exchange(place.port, b"a\nlast", closes=True) == b"A\nLAST"
            await place.wait(lambda: place.gone)
            assert place.gone == ["said farewell"]

    run(scenario)


def test_the_end_of_a_tls_session_is_the_end_of_the_peers_bytes(server: Certificate) -> None:
    async def scenario() -> None:
        async with listening(Farewell, tls=server_context(server, is_mutual=False)) as place:
            assert await say(place.port, b"a\n", client_context(server.ca_path)) == b"A\n"
            await place.wait(lambda: place.gone)
            assert place.gone == ["said farewell"]

    run(scenario)


def test_a_reset_by_the_peer_is_the_reason_of_the_end() -> None:
    async def scenario() -> None:
        async with listening() as place:
            reader, writer = await asyncio.open_connection(LOOPBACK, place.port)
            writer.write(b"a\n")
            await reader.readline()
            reset_on_close(writer.get_extra_info("socket"))
            writer.close()
            await place.wait(lambda: place.gone)
            assert place.gone == ["connection reset by peer"]

    run(scenario)


class Faulty(UpperEcho):
    """Has a bug in one of its methods. The peer's first bytes lead to the bug, or their end."""

    bug = ""

    def begin(self) -> None:
        super().begin()
        self.raise_in("begin")

    def receive(self, data: bytes | memoryview) -> None:
        self.raise_in("receive")
        self.transport.set_timer(0.01)
        self.transport.set_deadline(0.01, lambda: self.raise_in("deadline"))

    def receive_eof(self) -> None:
        self.raise_in("receive_eof")

    def on_timer(self) -> None:
        self.raise_in("timer")

    def raise_in(self, method: str) -> None:
        if self.bug == method:
            raise ZeroDivisionError(method)


@pytest.mark.parametrize("is_encrypted", [False, True])
@pytest.mark.parametrize("bug", ["begin", "receive", "receive_eof", "timer", "deadline"])
def test_an_exception_in_a_protocol_ends_its_connection_and_is_logged_once(
    server: Certificate, bug: str, is_encrypted: bool
) -> None:
    kinds = [UpperEcho, type("FaultyHere", (Faulty,), {"bug": bug})]

    async def scenario() -> None:
        tls = server_context(server, is_mutual=False) if is_encrypted else None
        context = client_context(server.ca_path) if is_encrypted else None
        async with listening(lambda: kinds[min(len(place.protocols), 1)](), tls=tls) as place:
            reader, writer = await asyncio.open_connection(LOOPBACK, place.port, ssl=context)
            writer.write(b"before\n")
            assert await reader.readline() == b"BEFORE\n"
            provoking = asyncio.ensure_future(say(place.port, b"now\n", context, closes=bug == "receive_eof"))
            (logged,) = await place.log.wait_for(ConnectionBug)
            assert logged.error == f"ZeroDivisionError('{bug}')"
            assert "Traceback" in logged.traceback
            await place.wait(lambda: place.gone)
            assert place.gone == [f"internal error: {logged.error}"]
            assert await provoking == b""
            writer.write(b"after\n")
            assert await reader.readline() == b"AFTER\n"
            writer.close()
            await place.wait(lambda: len(place.gone) == 2)
            assert len(place.log.of(ConnectionBug)) == 1

    run(scenario)


class Polite(UpperEcho):
    """Answers a fault of its peer, and takes no other fault for the peer's."""

    def receive(self, data: bytes | memoryview) -> None:
        if b"!" in bytes(data):
            raise ValueError("no shouting")
        super().receive(data)

    def on_fault(self, fault: Exception) -> bool:
        if not isinstance(fault, ValueError):
            return False
        self.transport.fail(str(fault), b"mind your manners\n")
        return True


def test_a_protocol_answers_a_fault_of_its_peer_itself() -> None:
    async def scenario() -> None:
        async with listening(Polite) as place:
            assert await exchange(place.port, b"a!\n") == b"mind your manners\n"
            await place.wait(lambda: place.gone)
            assert place.gone == ["no shouting"]
            assert place.log.of(ConnectionBug) == []

    run(scenario)


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_a_connector_dials_a_listener_and_again_after_a_loss(server: Certificate, is_encrypted: bool) -> None:
    async def scenario() -> None:
        tls = server_context(server, is_mutual=False) if is_encrypted else None
        context = client_context(server.ca_path) if is_encrypted else None
        async with (
            listening(tls=tls) as place,
            dialing(place.port, Caller, tls=context, backoff_min_s=0.01) as caller,
        ):
            Caller.on_answer = lambda protocol: caller.changed.set()  # type: ignore[method-assign]
            await caller.wait(lambda: caller.protocols and caller.protocols[0].__dict__.get("answer") == b"HELLO\n")
            assert caller.connector.snapshot().is_up
            place.protocols[0].transport.abort("a test")
            await caller.wait(lambda: len(caller.protocols) == 2 and caller.protocols[1].__dict__.get("answer"))
            assert caller.failed == []
            assert len(caller.log.of(ConnectorDown)) == 1

    run(scenario)


def test_a_connector_that_does_not_trust_its_peer_says_so(server: Certificate, tmp_path: Path) -> None:
    other = ensure_pki(tmp_path / "other", "m", [NodeRequest("s", Role.ROUTER)])[0]

    async def scenario() -> None:
        async with (
            listening(tls=server_context(server, is_mutual=False)) as place,
            dialing(place.port, Caller, tls=client_context(other.ca_path)) as caller,
        ):
            await caller.wait(lambda: caller.failed)
            assert caller.failed[0].startswith("certificate not trusted: ")
            (down,) = await caller.log.wait_for(ConnectorDown)
            assert down.reason == caller.failed[0]

    run(scenario)


def test_a_port_in_use_is_named() -> None:
    async def scenario() -> None:
        async with listening() as place:
            spec = PortSpec("second", LOOPBACK, place.port)
            with pytest.raises(BindError, match=r"listener second cannot use .* address already in use"):
                await SocketListener(place.io, spec, UpperEcho).open()

    run(scenario)
