"""The events in the supervisor's log, `log/_supervisor.jsonl`: one JSON object a line, as in the logs of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wire.log import Level, LogEvent


@dataclass(frozen=True, slots=True)
class NodeStarted(LogEvent):
    """The supervisor started the process of node `started`, which has yet to come up."""

    started: str
    pid: int | None


@dataclass(frozen=True, slots=True)
class NodeDied(LogEvent):
    """The process of node `died` (or `_linklogs`, the link log writer) ended; the supervisor starts it again after
    `restart_in_s`. A node that dies before the mesh is ready makes the start fail instead, except with `up --no-wait`.
    """

    level: ClassVar[Level] = "error"

    died: str
    exit_code: int
    reason: str
    restart_in_s: float


@dataclass(frozen=True, slots=True)
class NodeStopped(LogEvent):
    """The supervisor stopped the process of node `stopped`, as the whole mesh stops."""

    stopped: str


@dataclass(frozen=True, slots=True)
class OrphanStopped(LogEvent):
    """Before it started the mesh, `up` stopped node `stopped` (or `_linklogs`, the link log writer), which a crashed
    supervisor had left running or somebody had started by hand.
    """

    level: ClassVar[Level] = "warning"

    stopped: str


@dataclass(frozen=True, slots=True)
class PhaseEntered(LogEvent):
    """The mesh entered `phase`: linking, probing, ready, stopping or stopped."""

    phase: str


@dataclass(frozen=True, slots=True)
class StartFailed(LogEvent):
    """The mesh could not be made ready, for `reason`; the supervisor stops all nodes."""

    level: ClassVar[Level] = "error"

    reason: str
