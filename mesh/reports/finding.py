"""A finding about a mesh in words: its weight, its remedy, and its beginning."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from addressing.address import MESH_PREFIX

US_PER_S = 1_000_000
EACH = 3
"""The number of findings of a kind that are reported in full."""


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """``weight``: from 0, good to know, to 1, messages are lost. ``helps`` may have commands in backticks.

    ``since``: when the problem began; None if the finding concerns the whole time, or has a time in its text.
    """

    weight: float
    text: str
    helps: str
    since: datetime | None = None

    def to_map(self, tz: ZoneInfo) -> dict[str, Any]:
        since = None if self.since is None else shown(self.since, tz)
        return {"weight": round(self.weight, 3), "since": since, "text": self.text, "helps": self.helps}


def shown(at: datetime, tz: ZoneInfo) -> str:
    return at.astimezone(tz).isoformat(sep=" ", timespec="seconds")


def who(row: dict[str, Any]) -> str:
    """Name the client or link of a row that has a link."""
    name = row["container"] or row["user"]
    return f"{row['role'] or 'a link'} {name}" if name else f"{row['role'] or 'link'} {row['link']}"


def is_of_mesh(row: dict[str, Any]) -> bool:
    """Whether the address is the mesh's own. Links of a probe of `up` seem to wait long after the probe.

    Reply addresses belong to clients, and are reported.
    """
    return (row["address"] or "").startswith(MESH_PREFIX)
