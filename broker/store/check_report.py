"""The totals of a store, and the findings of a check."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from broker.store.batch import QueueRow

MOST_FINDINGS = 100


@dataclass(slots=True)
class QueueTotals:
    row: QueueRow
    messages: int = 0
    size_bytes: int = 0
    delivered: int = 0
    """Messages that were given to a consumer before."""
    is_mark_open: bool = False
    """The broker did not close the queue: at the next start up to 1,000 more messages count as delivered."""


@dataclass(slots=True)
class CheckReport:
    directory: Path
    queues: dict[int, QueueTotals] = field(default_factory=dict)
    messages: int = 0
    size_bytes: int = 0
    segments: int = 0
    unneeded_bytes: int = 0
    """Bytes of unneeded bodies in segments still needed, and of pages that belong to no table or list."""
    unchecked: int = 0
    """Large bodies stored before large bodies had checksums: only their sizes can be checked."""
    leftovers: int = 0
    """Segments, holdings and files that the next start deletes."""
    findings: list[str] = field(default_factory=list)
    findings_left_out: int = 0

    @property
    def is_sound(self) -> bool:
        return not self.findings

    def find(self, what: str) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(what)
        else:
            self.findings_left_out += 1
