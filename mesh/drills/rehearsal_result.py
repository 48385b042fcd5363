"""The result of a rehearsal, on a copy of a mesh or against a running mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from addressing.topology.model import Topology
from mesh.drills.detection import Notice
from mesh.drills.rehearsal import RehearsalRecord
from mesh.drills.report import Drawing


@dataclass(frozen=True, slots=True)
class RehearsalResult:
    record: RehearsalRecord
    seed: int
    drawing: Drawing
    notices: Sequence[Notice] = ()
    topology: Topology | None = None
    logs: Path | None = None
    """Folder with the log files of the nodes."""
    link_logs: Path | None = None
    """Folder with the link logs of the nodes."""
