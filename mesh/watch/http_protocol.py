"""HTTP/1.1 of the observer: uvicorn's protocol, with a limit of connections, and of the time that a client takes.

A client that sends nothing, or a byte now and then, or does not read its answer would keep a connection for ever; and
each process of the host can open as many as the observer has file descriptors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp

MAX_CONNECTIONS: Final = 512
"""The most connections; the one whose client has been without a whole request for longest is closed for another one."""
GRACE_S: Final = 2
"""Seconds that requests have to end when the observer stops."""


class HttpServer(uvicorn.Server):
    """Serves ``app`` as the observer does.

    Addresses that a proxy names are judged in `mesh.watch.request_source`. What clients do wrong is answered, and not
    logged; a fault of the observer is.
    """

    def __init__(self, app: ASGIApp) -> None:
        config = uvicorn.Config(
            app,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone: the observer has handlers of its own."""
        yield


class PatientProtocol(H11Protocol):
    """A connection whose client has REQUEST_S for a request, and READ_S to make room for more of an answer."""

    REQUEST_S: ClassVar[float] = 20.0
    """Seconds from the first byte of a request, or from the begin of the connection, to the end of the body."""
    READ_S: ClassVar[float] = 60.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._sending: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._idle_since: float | None = None

    @property
    def waiting_since(self) -> float | None:
        """Since when the client has been without a whole request, in the loop's seconds; None while one is answered."""
        return self._idle_since if self._sending is None else self._sending.when() - self.REQUEST_S

    # Connection
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()
        if len(self.connections) > MAX_CONNECTIONS:
            waiting = {
                each: each.waiting_since
                for each in self.connections
                if isinstance(each, PatientProtocol) and each.waiting_since is not None
            }
            min(waiting, key=waiting.__getitem__).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.resume_writing()
        super().connection_lost(exc)

    # Request
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._idle_since = None
        self._watch_request()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self.conn.their_state is not h11.IDLE:
            self._idle_since = None
        self._watch_request()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP/1.1, or has more than 64 KiB of headers; ``msg`` is uvicorn's text."""
        self._refuse(400, "this is not a valid request of HTTP/1.1, or its headers are longer than 64 KiB")

    def _watch_request(self) -> None:
        state = self.conn.their_state
        if state is h11.SEND_BODY or (state is h11.IDLE and self._sending is None and self.conn.trailing_data[0]):
            self._expect_request()
        elif state is not h11.IDLE:
            self._stop_waiting()

    def _expect_request(self) -> None:
        if self._sending is None:
            self._sending = self.loop.call_later(self.REQUEST_S, self._on_late)

    def _stop_waiting(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _on_late(self) -> None:
        self._sending = None
        if self.transport.is_closing():
            return
        is_begun = self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])
        if is_begun:
            self._refuse(408, f"the request was not whole after {self.REQUEST_S:g} s")
        else:
            self.transport.close()

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer in place of the application, if an answer may still begin, and close the connection."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        content = json.dumps({"error": sentence}).encode()
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(content))),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("connection", "close"),
        ]
        for event in (h11.Response(status_code=status, headers=headers), h11.Data(content), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    # Answer
    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading = self.loop.call_later(self.READ_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
