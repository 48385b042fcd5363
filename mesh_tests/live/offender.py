"""Whoever does to a port what no client should: bytes out, bytes back, and the lines that the router wrote about it."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from mesh_tests.ports import connect_from_new_host, local_name
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

ANSWER_S = 30.0

AMQP = b"AMQP\x00\x01\x00\x00"
SASL = b"AMQP\x03\x01\x00\x00"
OPEN_BODY = b"\x00\x53\x10\xc0\x0b\x01\xa1\x08offender"
BEGIN_BODY = b"\x00\x53\x11\xc0\x07\x04\x40\x43\x52\x7f\x52\x7f"


class Offender:
    def __init__(self, mesh: RunningMesh, router: str, port: int) -> None:
        self._mesh = mesh
        self._router = router
        self.socket = connect_from_new_host(port, ANSWER_S)
        self.local_name = local_name(self.socket)

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
        return complaints(self._mesh, self._router, self.local_name)

    def wait_one_complaint(self) -> dict[str, Any]:
        """The one line of warning about this connection."""
        wait_until(self.complaints, ANSWER_S, "a line in the log")
        lines = self.complaints()
        assert len(lines) == 1, lines
        return lines[0]


def complaints(mesh: RunningMesh, router: str, local_name: str) -> list[dict[str, Any]]:
    """What the router wrote of the connection from ``local_name`` that is not its ordinary coming and going."""
    return [line for line in mesh.log(router) if line["level"] != "info" and local_name in _about(line)]


def _about(line: dict[str, Any]) -> tuple[Any, str]:
    return line.get("remote"), str(line.get("client")).split(" at ")[-1]
