"""`up --detach`: starts the supervisor as a separate process and follows the start until the mesh is ready or fails.

The supervisor writes lines of JSON to a pipe, which the command reads: {"status": {...}} at every change of a node or
of the mesh, then {"ready": true} or {"failed": {...}} as the last line. With `--no-wait`, {"ready": true} comes as soon
as the process of every node has been started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from mesh.deploy import log_tail
from mesh.deploy.mesh_status import MeshStatus
from mesh.deploy.node_process import command_line, node_environment
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed


class StartReport:
    """The supervisor's end of the pipe to `up --detach`: writes the progress of the start.

    If the command has ended and no longer reads the pipe, reports are dropped and the supervisor goes on.
    """

    def __init__(self, descriptor: int) -> None:
        self._pipe: IO[str] | None = os.fdopen(descriptor, "w", buffering=1)

    def status(self, status: MeshStatus) -> None:
        self._write({"status": status.to_map()})

    def ready(self) -> None:
        self._end({"ready": True})

    def failed(self, failed: CommandFailed) -> None:
        self._end({"failed": failed.to_map()})

    def _end(self, message: dict[str, Any]) -> None:
        self._write(message)
        self._close()

    def _write(self, message: dict[str, Any]) -> None:
        if self._pipe is None:
            return
        try:
            self._pipe.write(json.dumps(message) + "\n")
        except BrokenPipeError:
            self._close()

    def _close(self) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                return


def start_detached(arguments: list[str], log: Path, observe: Callable[[MeshStatus], None]) -> int:
    """Start `amqpmesh up` with ``arguments`` in a new session of the system; return its pid once the mesh is ready or,
    with `--no-wait`, every node's process has been started.

    Calls ``observe`` at each change. Raises CommandFailed, with the supervisor's report or a cause from its log, if the
    mesh could not be made ready. Ctrl-C stops the supervisor, too.
    """
    reading, writing = os.pipe()
    since = log_tail.end_of(log)
    with log.open("ab") as output:
        supervisor = subprocess.Popen(
            command_line("up", *arguments, "--report-fd", str(writing)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=[writing],
            env=node_environment(),
        )
    os.close(writing)
    try:
        with os.fdopen(reading) as reports:
            _follow(reports, observe)
    except EOFError:
        cause = log_tail.first_cause(log, since) or f"see {log}"
        raise CommandFailed(f"the supervisor ended before the mesh was ready: {cause}") from None
    except KeyboardInterrupt:
        supervisor.send_signal(signal.SIGTERM)
        supervisor.wait()
        raise
    return supervisor.pid


def _follow(reports: IO[str], observe: Callable[[MeshStatus], None]) -> None:
    for text in reports:
        message = json.loads(text)
        if "ready" in message:
            return
        if "failed" in message:
            failed = message["failed"]
            exit_code = ExitCode(failed["exit_code"])
            raise CommandFailed(failed["message"], exit_code=exit_code, fix=failed.get("fix"), code=failed.get("code"))
        observe(MeshStatus.from_map(message["status"]))
    raise EOFError
