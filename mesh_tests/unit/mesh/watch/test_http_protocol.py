"""HTTP of the observer over sockets: broken, smuggled, huge and slow requests, and clients that do not read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mesh.watch import http_protocol
from mesh.watch.http_protocol import HttpServer, PatientProtocol
from mesh_tests.ports import free_port
from mesh_tests.unit.mesh.watch.test_writes import filled
from mesh_tests.unit.mesh.watch.writing_host import TOKEN

SOON_S = 30.0
HEAD = "Host: 127.0.0.1:1\r\n"
ME = f"GET /api/me HTTP/1.1\r\n{HEAD}Authorization: Bearer {TOKEN}\r\n"
"""The head of a request that is answered, but for its last line."""
POST = f"POST /login HTTP/1.1\r\n{HEAD}"
SMUGGLED = f"{ME}\r\n"
Serve = Callable[[int], Coroutine[Any, Any, None]]


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[int]:
    """Serves ``app``; yields the port."""
    port = free_port()
    server = HttpServer(app)
    server.config.host, server.config.port = "127.0.0.1", port
    task = asyncio.create_task(server.serve())
    while not server.started:
        assert not task.done()
        await asyncio.sleep(0.01)
    try:
        yield port
    finally:
        server.should_exit = server.force_exit = True
        await asyncio.wait_for(task, SOON_S)


def serve(app: Any, test: Serve) -> None:
    async def run() -> None:
        async with serving(app) as port:
            await test(port)

    asyncio.run(run())


async def exchange(port: int, sent: bytes, *more: bytes, pause_s: float = 0.0) -> bytes:
    """Send, and return all that comes until the observer closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        for part in more:
            await asyncio.sleep(pause_s)
            if writer.is_closing():
                break
            writer.write(part)
        return await asyncio.wait_for(reader.read(), SOON_S)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def statuses(answer: bytes) -> list[int]:
    return [int(part.split(b" ", 1)[0]) for part in answer.split(b"HTTP/1.1 ")[1:]]


@pytest.fixture
def app(tmp_path: Path) -> Any:
    return filled(tmp_path).app


def raw(text: str) -> bytes:
    return text.encode("latin-1")


@pytest.mark.parametrize(
    "sent",
    [
        raw(f"{POST}Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde{SMUGGLED}"),
        raw(f"{POST}Content-Length: 5, 6\r\n\r\nabcde{SMUGGLED}"),
        raw(f"{POST}Content-Length: +5\r\n\r\nabcde{SMUGGLED}"),
        raw(f"{POST}Content-Length: -5\r\n\r\n{SMUGGLED}"),
        raw(f"{POST}Content-Length: 0x5\r\n\r\nabcde{SMUGGLED}"),
        raw(f"{POST}Content-Length: 5 5\r\n\r\nabcde{SMUGGLED}"),
        raw(f"{POST}Content-Length: {'9' * 30}\r\n\r\nabcde{SMUGGLED}"),
        raw(f"{POST}Content-Length : 5\r\n\r\nabcde{SMUGGLED}"),
        raw(f"{POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}"),
        raw(f"{POST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{SMUGGLED}"),
        raw(f"{POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{SMUGGLED}"),
        raw(f"{POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{SMUGGLED}"),
        raw(f"{POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}"),
        raw(f"{POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{SMUGGLED}"),
        raw(f"{POST}Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n{SMUGGLED}"),
        raw(f"{POST}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n{SMUGGLED}"),
        raw(f"{POST}Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n{SMUGGLED}"),
        raw(f"GET /api HTTP/1.1\r\n{HEAD}Host: evil.example\r\n\r\n{SMUGGLED}"),
        raw(f"GET /api HTTP/1.1\r\n\r\n{SMUGGLED}"),
        raw(f"GET  /api HTTP/1.1\r\n{HEAD}\r\n{SMUGGLED}"),
        raw(f"GET /api\r\n{HEAD}\r\n{SMUGGLED}"),
        raw(f"GET /a b HTTP/1.1\r\n{HEAD}\r\n{SMUGGLED}"),
        raw(f"GET /\xff HTTP/1.1\r\n{HEAD}\r\n{SMUGGLED}"),
        raw(f"GET /api HTTP/1.1\r\n{HEAD}X: a\0b\r\n\r\n{SMUGGLED}"),
        raw(f"GET /api HTTP/1.1\r\n{HEAD}X\r\n\r\n{SMUGGLED}"),
        raw(f"GET /api HTTP/1.1\r\n{HEAD}(x): y\r\n\r\n{SMUGGLED}"),
        raw(f"GET /api HTTP/1.1\r\n{HEAD}X: {'a' * 70_000}\r\n\r\n{SMUGGLED}"),
        raw(f"GET /api HTTP/1.1\r\n{HEAD}{''.join(f'X{n}: y{chr(13)}{chr(10)}' for n in range(20_000))}\r\n{SMUGGLED}"),
        raw(f"GET /{'a' * 70_000} HTTP/1.1\r\n{HEAD}\r\n{SMUGGLED}"),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"AMQP\x00\x01\x00\x00" + bytes(100),
    ],
    ids=lambda sent: sent[:110].decode("latin-1").replace(POST, ""),
)  # fmt: skip
def test_a_broken_request_is_refused_and_nothing_behind_it_is_a_request(
    sent: bytes, app: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(PatientProtocol, "REQUEST_S", 1.0)

    async def test(port: int) -> None:
        answer = await exchange(port, sent)
        assert statuses(answer) in ([400], [408], [431], [501], [421, 400], [])
        assert b"is_owner" not in answer
        if answer:
            assert "error" in json.loads(answer.rpartition(b"\r\n\r\n")[2])
            assert b"connection: close" in answer.lower()
        assert statuses(await exchange(port, raw(f"{ME}Connection: close\r\n\r\n"))) == [200]

    serve(app, test)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("GET http://evil.example/api HTTP/1.1\r\nHost: evil.example\r\n", 421),
        (f"GET http://evil.example/api HTTP/1.1\r\n{HEAD}Authorization: Bearer {TOKEN}\r\n", 404),
        ("GET /api HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n", 421),
        ("GET /api HTTP/1.1\r\nHost: evil.example:15680\r\nX-Forwarded-Host: 127.0.0.1\r\n", 421),
        ("GET /api HTTP/1.1\r\nHost: user@127.0.0.1\r\n", 421),
        ("GET /api HTTP/1.1\r\nHost:\r\n", 421),
        ("GET /livez HTTP/1.1\r\nHost: evil.example\r\n", 421),
        ("GET /login HTTP/1.1\r\nHost: evil.example\r\n", 421),
        ("GET /api HTTP/1.0\r\n", 421),
        (f"GET /api HTTP/1.1\r\n{HEAD}Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n", 401),
        (f"OPTIONS * HTTP/1.1\r\n{HEAD}", 401),
        (f"TRACE /api HTTP/1.1\r\n{HEAD}Authorization: Bearer {TOKEN}\r\n", 405),
        (f"CONNECT evil.example:443 HTTP/1.1\r\n{HEAD}Authorization: Bearer {TOKEN}\r\n", 404),
        (f"GET /api HTTP/1.1\r\n{HEAD}Authorization: Basic {'A' * 60_000}\r\n", 401),
        (f"GET /api HTTP/1.1\r\n{HEAD}Cookie: {'a=b;' * 15_000}\r\n", 401),
    ],
    ids=lambda sent: str(sent)[:100],
)
def test_a_request_for_another_host_or_without_a_login_is_refused(sent: str, status: int, app: Any) -> None:
    async def test(port: int) -> None:
        answer = await exchange(port, raw(f"{sent}Connection: close\r\n\r\n"))
        assert statuses(answer) == [status]
        assert b"x-frame-options: DENY" in answer
        assert b"access-control" not in answer.lower()

    serve(app, test)


@pytest.mark.parametrize(
    "parts",
    [
        [raw(ME)],
        [raw(f"{POST}Content-Length: 100\r\n\r\n{{")],
        [raw(f"{POST}Transfer-Encoding: chunked\r\n\r\n5\r\nab")],
        [raw("GET / HT"), *[b"T"] * 100],
        [raw(f"{POST}Content-Length: 1000\r\n\r\n"), *[b"x"] * 100],
        [raw(f"{POST}Content-Length: 2\r\n\r\n{{}}{POST}Content-Length: 100\r\n\r\n{{")],
    ],
    ids=["head", "body", "chunk", "dripping head", "dripping body", "second request"],
)
def test_a_request_that_does_not_end_is_refused(
    parts: list[bytes], app: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(PatientProtocol, "REQUEST_S", 0.3)

    async def test(port: int) -> None:
        answer = await exchange(port, *parts, pause_s=0.02)
        # A connection that is closed while its client still sends can lose the answer.
        assert not answer or statuses(answer)[-1] == 408
        assert answer or len(parts) > 1
        if answer:
            assert "was not whole after 0.3 s" in json.loads(answer.rpartition(b"\r\n\r\n")[2])["error"]

    serve(app, test)
    assert capfd.readouterr() == ("", "")


def test_a_connection_without_a_request_is_closed(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PatientProtocol, "REQUEST_S", 0.2)

    async def test(port: int) -> None:
        assert await exchange(port, b"") == b""

    serve(app, test)


def test_a_client_that_goes_away_in_its_request_leaves_no_trace(app: Any, capfd: pytest.CaptureFixture[str]) -> None:
    async def test(port: int) -> None:
        for path in ("/login", "/api/queues/b1/1/purge"):
            head = f"POST {path} HTTP/1.1\r\n{HEAD}Authorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n{{"
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(raw(head))
            await writer.drain()
            writer.close()
        assert statuses(await exchange(port, raw(f"{ME}Connection: close\r\n\r\n"))) == [200]

    serve(app, test)
    assert capfd.readouterr() == ("", "")


def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PatientProtocol, "READ_S", 0.2)
    ended = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65_536
            await asyncio.sleep(0)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await StreamingResponse(endless())(scope, receive, send)
        finally:
            ended.set()

    async def test(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(raw(f"{ME}\r\n"))
        await asyncio.wait_for(ended.wait(), SOON_S)
        writer.close()

    serve(app, test)


def test_a_new_connection_takes_the_place_of_the_one_that_waited_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "MAX_CONNECTIONS", 4)
    release = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            await release.wait()
        await Response("done")(scope, receive, send)

    async def test(port: int) -> None:
        slow_reader, slow = await asyncio.open_connection("127.0.0.1", port)
        slow.write(raw(f"GET /slow HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n"))
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(10)]
        for reader, _ in idle[:6]:
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await asyncio.wait_for(reader.readexactly(1), SOON_S)
        assert statuses(await exchange(port, raw(f"GET / HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n"))) == [200]
        release.set()
        assert statuses(await asyncio.wait_for(slow_reader.read(), SOON_S)) == [200]
        for _, writer in (*idle, (slow_reader, slow)):
            writer.close()

    serve(app, test)


def test_clients_that_ask_again_and_again_keep_nobody_out(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection that has been idle for longest goes, not the new one."""
    monkeypatch.setattr(http_protocol, "MAX_CONNECTIONS", 4)

    async def test(port: int) -> None:
        kept = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(raw(f"{ME}\r\n"))
            assert statuses(await reader.readuntil(b"\r\n\r\n")) == [200]
            kept.append((reader, writer))
        for _ in range(3):
            assert statuses(await exchange(port, raw(f"{ME}Connection: close\r\n\r\n"))) == [200]
        for _, writer in kept:
            writer.close()

    serve(app, test)


def test_a_body_that_is_broken_after_the_answer_leaves_no_trace(app: Any, capfd: pytest.CaptureFixture[str]) -> None:
    async def test(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(raw(f"POST /api/queues/b1/1/purge HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n"))
        assert statuses(await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SOON_S)) == [401]
        writer.write(b"zzzz\r\n")
        await asyncio.wait_for(reader.read(), SOON_S)
        writer.close()

    serve(app, test)
    assert capfd.readouterr() == ("", "")
