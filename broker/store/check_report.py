"""The report of a check of a broker's store: totals, and findings about damage."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from broker.store.batch import QueueRow

MOST_FINDINGS = 100


@dataclass(slots=True)
class QueueTotals:
    """Totals of the messages that one queue or subscription has in a checked store."""

    row: QueueRow
    messages: int = 0
    size_bytes: int = 0
    delivered: int = 0
    """The number of messages that may have been given to a consumer before."""
    is_mark_open: bool = False
    """The broker did not stop in order: at its next start up to 1,000 more messages of the queue count as delivered."""


@dataclass(slots=True)
class CheckReport:
    """The totals of a checked store, and sentences about its damage, at most MOST_FINDINGS."""

    directory: Path
    queues: dict[int, QueueTotals] = field(default_factory=dict)
    messages: int = 0
    size_bytes: int = 0
    segments: int = 0
    unneeded_bytes: int = 0
    """Bytes of deleted messages in segments that have other messages, and of database pages that nothing uses."""
    unchecked: int = 0
    """The number of large bodies stored before large bodies had checksums: only their sizes can be checked."""
    leftovers: int = 0
    """The number of unneeded segments, holdings and files, which the next start of the broker deletes."""
    findings: list[str] = field(default_factory=list)
    findings_left_out: int = 0

    @property
    def is_sound(self) -> bool:
        return not self.findings

    def find(self, what: str) -> None:
        """Add a finding, a sentence about damage; beyond MOST_FINDINGS, findings are only counted."""
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(what)
        else:
            self.findings_left_out += 1
