"""Whoever does to a port what no client should: bytes out, bytes back, and the lines that the router wrote about it."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any

from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

ANSWER_S = 10.0

AMQP = b"AMQP\x00\x01\x00\x00"
SASL = b"AMQP\x03\x01\x00\x00"
OPEN_BODY = b"\x00\x53\x10\xc0\x0b\x01\xa1\x08offender"
BEGIN_BODY = b"\x00\x53\x11\xc0\x07\x04\x40\x43\x52\x7f\x52\x7f"


class Offender:
    def __init__(self, mesh: RunningMesh, router: str, port: int) -> None:
        self._mesh = mesh
        self._router = router
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_S)
        self.local_port = self.socket.getsockname()[1]

    def __enter__(self) -> Offender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, *pieces: bytes) -> None:
        self.socket.sendall(b"".join(pieces))

    def leave(self) -> None:
        self.socket.close()

    def answer(self) -> bytes:
        """All bytes until the router closes the socket, which must not be by a reset; then we do the same."""
        self.socket.settimeout(ANSWER_S)
        parts = []
        while part := self.socket.recv(65536):
            parts.append(part)
        self.socket.close()
        return b"".join(parts)

    def complaints(self) -> list[dict[str, Any]]:
        return complaints(self._mesh, self._router, self.local_port)

    def wait_one_complaint(self) -> dict[str, Any]:
        """The one line of warning about this connection."""
        wait_until(self.complaints, ANSWER_S, "a line in the log")
        lines = self.complaints()
        assert len(lines) == 1, lines
        return lines[0]


def complaints(mesh: RunningMesh, router: str, local_port: int) -> list[dict[str, Any]]:
    """What the router wrote of the connection from ``local_port`` that is not its ordinary coming and going."""
    about = f"127.0.0.1:{local_port}"
    lines = [
        line for line in mesh.log(router) if about in (line.get("remote"), str(line.get("client")).split(" at ")[-1])
    ]
    return [line for line in lines if line["level"] != "info"]
