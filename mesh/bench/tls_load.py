"""The process of `bench handshakes` that makes TLS handshakes, one after the other in each of several threads.

Python's ssl gives up its lock in a handshake, so the threads are as fast as `openssl s_time` in as many processes.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from mesh.bench.dial import HANDSHAKE_TIMEOUT_S, BenchServer
from mesh.bench.worker import WorkerReport
from mesh.client.errors import MeshError, Unreachable
from wire.transport.os_errors import describe_os_error


def shake_hands(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    load = TlsLoad(BenchServer(**plan["place"]))
    # A first handshake raises any error before the others begin.
    load.shake()
    yield WorkerReport({"ready": True})
    began_at, before_s = time.monotonic(), time.process_time()
    threads = [
        threading.Thread(target=load.shake_until, args=(began_at + plan["seconds"],), daemon=True)
        for _ in range(plan["at_once"])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if load.failed is not None:
        raise load.failed
    yield WorkerReport(
        {
            "handshakes": load.count,
            "began_at": began_at,
            "ended_at": time.monotonic(),
            "cpu_s": time.process_time() - before_s,
        }
    )


class TlsLoad:
    """Full handshakes with a server whose certificate is not checked, without resuming sessions."""

    def __init__(self, place: BenchServer) -> None:
        self._place = place
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        self._lock = threading.Lock()
        self.count = 0
        self.failed: MeshError | None = None

    def shake_until(self, ends_at: float) -> None:
        count = 0
        try:
            while time.monotonic() < ends_at and self.failed is None:
                self.shake()
                count += 1
        except MeshError as error:
            self.failed = error
        with self._lock:
            self.count += count

    def shake(self) -> None:
        """Connect, make a handshake, and close. Raise Unreachable."""
        try:
            with socket.create_connection((self._place.host, self._place.port), HANDSHAKE_TIMEOUT_S) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._context.wrap_socket(connection).close()
        except OSError as error:
            raise Unreachable(f"{self._place.name}: TLS handshake failed: {describe_os_error(error)}") from None
