"""Traces of connections that a node writes for an operator: a file each, bounded in time and size.

A file `run/<node>.trace-<connection>.jsonl` has a JSON object for each frame (`wire.frame_trace`), and a last one with
`ended`, the reason for the end. Only the owner of the mesh may read it. The files of the last traces stay.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from mesh.deploy.operator_requests import OWNER, operator_of, whole_number
from mesh.deploy.workdir import WorkDir
from wire.endpoint import Endpoint
from wire.frame_trace import FrameTrace, TraceLine
from wire.log import Emit, LogEvent

MOST_SECONDS: Final = 3600.0
MOST_BYTES: Final = 16 * 1024 * 1024
MOST_AT_ONCE: Final = 4
MOST_FILES: Final = 10


@dataclass(frozen=True, slots=True)
class TraceBegan(LogEvent):
    """An operator has the frames of connection `connection` written to `file`, for `seconds`; bodies are left out."""

    connection: int
    client: str
    seconds: float
    file: str
    operator: str


@dataclass(frozen=True, slots=True)
class TraceEnded(LogEvent):
    """The trace of connection `connection` ended after `frames` frames, for `reason`: time, size, or the connection."""

    connection: int
    frames: int
    reason: str


class TraceFiles:
    """The traces of node ``name``; ``endpoint_of`` returns the endpoint of a connection, or raises ValueError."""

    def __init__(self, workdir: WorkDir, name: str, endpoint_of: Callable[[int], Endpoint], log: Emit) -> None:
        self._workdir = workdir
        self._name = name
        self._endpoint_of = endpoint_of
        self._log = log
        self._traces: dict[int, _Trace] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer the request `trace`: begin a trace of ``connection`` for ``seconds``, or end it if that is 0.

        Raises ValueError for an unknown connection, a time out of bounds, or more than 4 traces at once.
        """
        connection, seconds = whole_number(request, "connection"), request.get("seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds <= MOST_SECONDS:
            raise ValueError(f"seconds: expected a number from 0 to {MOST_SECONDS:g}, got {seconds!r:.80}")
        running = self._traces.get(connection)
        if not seconds:
            if running is None:
                raise ValueError(f"connection {self._name}/{connection} has no trace: expected seconds above 0")
            running.trace.end("an operator ended the trace")
            return {"connection": connection, "file": str(running.file), "seconds": 0}
        if running is not None:
            raise ValueError(f"connection {self._name}/{connection} has a trace already, in {running.file}")
        if len(self._traces) >= MOST_AT_ONCE:
            others = ", ".join(map(str, sorted(self._traces)))
            raise ValueError(f"expected at most {MOST_AT_ONCE} traces at once: connections {others} have one each")
        endpoint = self._endpoint_of(connection)
        file = self._begin(connection, endpoint, float(seconds), operator_of(request) or OWNER)
        return {"connection": connection, "file": str(file), "seconds": seconds}

    def _begin(self, connection: int, endpoint: Endpoint, seconds: float, operator: str) -> Path:
        file = self._workdir.trace_file(self._name, connection)
        self._delete_old()
        file.unlink(missing_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        running = self._traces[connection] = _Trace(
            file, os.fdopen(descriptor, "w"), endpoint, lambda reason: self._on_over(connection, reason)
        )
        running.begin(seconds)
        client = f"{endpoint.peer_name} at {endpoint.peer.remote_address}"
        self._log(TraceBegan(connection, client, seconds, str(file), operator))
        return file

    def _on_over(self, connection: int, reason: str) -> None:
        over = self._traces.pop(connection)
        over.close(reason)
        self._log(TraceEnded(connection, over.frames, reason))

    def _delete_old(self) -> None:
        files = sorted(self._workdir.traces_of(self._name), key=lambda file: file.stat().st_mtime)
        for file in files[: max(0, len(files) - MOST_FILES + 1)]:
            file.unlink(missing_ok=True)


class _Trace:
    """A trace that goes on: its file, with the frames and bytes written so far."""

    def __init__(self, file: Path, stream: IO[str], endpoint: Endpoint, on_over: Callable[[str], None]) -> None:
        self.file = file
        self.frames = 0
        self._stream = stream
        self._bytes = 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.trace = FrameTrace(endpoint, self._write, self._loop.time, on_over)

    def begin(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self.trace.end, "the time is over")
        self.trace.begin()

    def _write(self, line: TraceLine) -> None:
        self.frames += 1
        if not self._put(line):
            self.trace.end("the file cannot be written")
        elif self._bytes > MOST_BYTES:
            self.trace.end(f"the file has {MOST_BYTES:,} bytes")

    def _put(self, line: TraceLine) -> bool:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        text = json.dumps({"ts": now, **line}, ensure_ascii=False) + "\n"
        self._bytes += len(text)
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            return False
        return True

    def close(self, reason: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._put({"ended": reason, "frames": self.frames})
        try:
            self._stream.close()
        except OSError:
            return
