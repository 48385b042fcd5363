"""`up --detach`: the supervisor as a process of its own, which reports to the one that started it until it is ready.

Over a pipe, one JSON line each: {"status": {...}} at every change, at the end {"ready": true} or {"failed": {...}}.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from mesh import log_tail
from mesh.exit_codes import ExitCode
from mesh.failure import CommandFailed
from mesh.mesh_status import MeshStatus
from mesh.node_process import command_line, node_environment


class Report:
    """The supervisor's end of the pipe. Whoever listened may be gone: that is no reason to stop."""

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
    """Start `amqpmesh up` with ``arguments`` in a session of its own; its process id once it is ready.

    Raises CommandFailed with what it reported when it could not be made ready.
    """
    reading, writing = os.pipe()
    since_bytes = log_tail.size_bytes(log)
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
        cause = log_tail.first_cause(log, since_bytes) or f"see {log}"
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
