"""The helper process of the supervisor that decides whether the mesh is ready: it ends once that is decided.

The client, TLS and the topology take 25 MB of memory, and the supervisor needs them only until the mesh is ready. The
helper is a fork of `amqpmesh up`, which has read the topology, and tells by lines of JSON on a socket: {"missing": ...}
at each change of what is missing, {"linked": true}, {"probed": true}, or {"failed": ...}. It begins when the supervisor
writes a line, once the nodes are started: until then, nodes of an earlier supervisor may run. It ends when the
supervisor closes the socket.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mesh.client.errors import MeshError
from mesh.terminal.failure import CommandFailed, as_failure

if TYPE_CHECKING:
    from mesh.deploy.supervisor import Readiness

LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Helper:
    """The process id of the helper, and this process's end of the socket, which the program of an exec inherits."""

    pid: int
    descriptor: int


def fork_helper(readiness: Readiness, others: Sequence[int] = ()) -> Helper:
    """Fork the helper. The helper closes the descriptors ``others`` of this process; no event loop may exist yet."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            for descriptor in others:
                os.close(descriptor)
            # Ctrl-C is meant for the supervisor, whose end ends the helper.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            asyncio.run(_tell(readiness, theirs))
        finally:
            os._exit(0)
    theirs.close()
    ours.set_inheritable(True)
    return Helper(pid, ours.detach())


async def _tell(readiness: Readiness, pipe: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=pipe)
    if not await reader.readline():
        return

    def say(told: dict[str, Any]) -> None:
        writer.write(json.dumps(told).encode() + b"\n")

    tasks = [asyncio.create_task(work) for work in (_decide(readiness, say), _tell_missing(readiness, say))]
    tasks.append(asyncio.create_task(_hang_up(reader)))
    await asyncio.wait((tasks[0], tasks[2]), return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    writer.close()
    try:
        await writer.wait_closed()
    except OSError:
        return


async def _decide(readiness: Readiness, say: Any) -> None:
    try:
        await readiness.wait_linked()
        say({"linked": True})
        await readiness.wait_probed()
        say({"probed": True})
    except MeshError as error:
        say({"failed": as_failure(error).to_map()})


async def _tell_missing(readiness: Readiness, say: Any) -> None:
    told = None
    while True:
        if (missing := readiness.missing()) != told:
            told = missing
            say({"missing": missing})
        await asyncio.sleep(LOOK_S)


async def _hang_up(reader: asyncio.StreamReader) -> None:
    await reader.read()


class HelperReadiness:
    """The readiness of a mesh as the helper process tells it."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._missing = ""

    async def wait_linked(self) -> None:
        await self._wait("linked")

    async def wait_probed(self) -> None:
        await self._wait("probed")
        assert self._reader is not None
        assert self._writer is not None
        self._writer.close()
        await self._reader.read()
        self._reap()

    def missing(self) -> str:
        return self._missing

    def _reap(self) -> None:
        """Take the exit code of the helper, which has closed its socket as its last act."""
        os.waitpid(self._helper.pid, 0)

    async def _wait(self, wanted: str) -> None:
        if self._reader is None:
            pipe = socket.socket(fileno=self._helper.descriptor)
            self._reader, self._writer = await asyncio.open_connection(sock=pipe)
            self._writer.write(b"begin\n")
        while line := await self._reader.readline():
            told = json.loads(line)
            self._missing = told.get("missing", self._missing)
            if (failed := told.get("failed")) is not None:
                raise CommandFailed(failed["message"], fix=failed.get("fix"), code=failed.get("code"))
            if wanted in told:
                return
        raise CommandFailed("the process that finds out whether the mesh is ready has ended")
