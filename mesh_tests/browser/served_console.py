"""A console that a browser can open: an observer's pages over HTTP, over a host model that a test changes."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mesh.watch.http_protocol import HttpServer
from mesh_tests.browser.faked_mesh import FakedMesh, RecordedWrites, WritingConsoleHost
from mesh_tests.ports import free_port
from mesh_tests.unit.mesh.watch.console_host import NOW_S, TRIANGLE, ConsoleHost
from mesh_tests.unit.mesh.watch.memory_link import MemoryHost

TICK_S = 0.1
SOON_S = 20.0


class ServedConsole:
    """Serves until ``close``. ``change`` changes the host as the observer does: between requests."""

    def __init__(
        self, topology: str | Path = TRIANGLE, token: str | None = None, neighbor: MemoryHost | None = None
    ) -> None:
        self._folder = TemporaryDirectory()
        self.host = WritingConsoleHost(Path(self._folder.name), topology, token, neighbor)
        self.writes = RecordedWrites(self.host.app)
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._began = time.monotonic()
        self.start()

    def start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(SOON_S)

    @property
    def mesh(self) -> FakedMesh:
        return self.host.mesh

    def cookie(self, user: str | None = None) -> dict[str, str]:
        """Return the cookie of a login of a user, or of the owner."""
        sessions = self.host.access.sessions
        return {"name": sessions.cookie, "value": sessions.new_session(user), "url": self.url}

    def change(self, work: Callable[[ConsoleHost], Any]) -> Any:
        async def do() -> Any:
            return work(self.host)

        return self.run(do())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SOON_S)

    def stop(self) -> None:
        """Stop as an observer that is killed: open connections break."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(SOON_S)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self.stop()
        self._folder.cleanup()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = HttpServer(self.writes)
        ticking = asyncio.create_task(self._tick())
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self._port))
            listener.listen()
            ready.set()
            await self._server.serve([listener])
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking

    async def _tick(self) -> None:
        while True:
            self.host.model.on_time(NOW_S + time.monotonic() - self._began)
            await asyncio.sleep(TICK_S)
