"""The supervisor's own log, `log/_supervisor.jsonl`: one JSON object a line, like every node's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class NodeStarted(LogEvent):
    started: str
    pid: int | None


@dataclass(frozen=True, slots=True)
class NodeDied(LogEvent):
    level: ClassVar[Level] = "error"

    died: str
    exit_code: int
    reason: str
    restart_in_s: float


@dataclass(frozen=True, slots=True)
class NodeStopped(LogEvent):
    stopped: str


@dataclass(frozen=True, slots=True)
class OrphanStopped(LogEvent):
    """A node that ran without this supervisor, left by a crash or started by hand."""

    level: ClassVar[Level] = "warning"

    stopped: str


@dataclass(frozen=True, slots=True)
class PhaseEntered(LogEvent):
    phase: str


@dataclass(frozen=True, slots=True)
class StartFailed(LogEvent):
    level: ClassVar[Level] = "error"

    reason: str
