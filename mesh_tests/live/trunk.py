"""How does a test cut the connection between two routers that both live on? It leads through here, byte by byte."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from threading import Lock, Thread
from types import TracebackType

from mesh_tests.ports import free_port

CHUNK_BYTES = 65536
SLOW_CHUNK_BYTES, SLOW_BUFFER_BYTES = 4096, 32768


class Trunk:
    """Whoever dials ``port`` gets to ``to_port``; while the trunk is cut nobody is answered.

    One who dialed a trunk that is cut gets through as it is mended: a router that is turned away dials ever less often.
    ``bytes_per_s``: more does not go through it in either direction; it holds little itself.
    """

    def __init__(self, to_port: int, bytes_per_s: float = 0) -> None:
        self.port = free_port()
        self._bytes_per_s = bytes_per_s
        self._to_port = to_port
        self._is_cut = False
        self._sockets: list[socket.socket] = []
        self._waiting: list[socket.socket] = []
        self._lock = Lock()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        if bytes_per_s:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_BUFFER_BYTES)
        Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Trunk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _end(self._listener)
        self.cut()
        for near in self._waiting:
            _end(near)

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            for each in self._sockets:
                _end(each)
            self._sockets.clear()

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False
            waiting, self._waiting = self._waiting, []
            for near in waiting:
                self._join(near)

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                with self._lock:
                    self._waiting.append(near) if self._is_cut else self._join(near)

    def _join(self, near: socket.socket) -> None:
        far = socket.socket()
        if self._bytes_per_s:
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_BUFFER_BYTES)
        try:
            far.connect(("127.0.0.1", self._to_port))
        except OSError:  # it does not listen yet: who dialed is to try again
            _end(near)
            far.close()
            return
        self._sockets += [near, far]
        for one, other in ((near, far), (far, near)):
            Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(SLOW_CHUNK_BYTES if self._bytes_per_s else CHUNK_BYTES):
                if self._bytes_per_s:
                    time.sleep(len(data) / self._bytes_per_s)
                other.sendall(data)
        _end(one)
        _end(other)


def _end(each: socket.socket) -> None:
    """Also of who waits for it in another thread."""
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
