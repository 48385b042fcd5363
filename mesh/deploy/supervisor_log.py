"""The events in the supervisor's log, `log/_supervisor.jsonl`: one JSON object a line, as in the logs of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class NodeStarted(LogEvent):
    """The process of node `started` was started."""

    started: str
    pid: int | None


@dataclass(frozen=True, slots=True)
class NodeDied(LogEvent):
    """Node `died` (or `_linklogs`, the writer of link logs) has ended, and starts again after `restart_in_s`."""

    level: ClassVar[Level] = "error"

    died: str
    exit_code: int
    reason: str
    restart_in_s: float


@dataclass(frozen=True, slots=True)
class NodeStopped(LogEvent):
    """The supervisor stopped node `stopped`."""

    stopped: str


@dataclass(frozen=True, slots=True)
class OrphanStopped(LogEvent):
    """`up` stopped a node that was running before this supervisor, left by a crash or started by hand."""

    level: ClassVar[Level] = "warning"

    stopped: str


@dataclass(frozen=True, slots=True)
class PhaseEntered(LogEvent):
    """The mesh entered `phase`: linking, probing, ready, stopping or stopped."""

    phase: str


@dataclass(frozen=True, slots=True)
class StartFailed(LogEvent):
    """The mesh could not be made ready, and the supervisor stops all nodes."""

    level: ClassVar[Level] = "error"

    reason: str
