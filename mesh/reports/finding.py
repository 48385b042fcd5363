"""A finding of a report about the mesh, in words, with its weight and remedy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from addressing.address import MESH_PREFIX, Address

US_PER_S = 1_000_000
EACH = 3
"""The number of findings of one kind that are reported in full."""


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """A finding: a sentence about a problem, and advice (``helps``) that may have commands in backticks.

    ``weight``: from 0 (good to know) to 1 (messages are lost).

    ``since``: the time at which the problem began; None if the finding concerns the whole report, or has a time in its
    text.
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
    """Return the name of the client of a row's link: its role with container-id or user, or else the link's number."""
    name = row["container"] or row["user"]
    return f"{row['role'] or 'a link'} {name}" if name else f"{row['role'] or 'link'} {row['link']}"


def is_of_mesh(row: dict[str, Any]) -> bool:
    """Tell whether the address of a row begins with the mesh's own prefix, `_amqpmesh/`, in any space.

    Findings leave such rows out, because links of the probe of `amqpmesh up` seem to wait long after the probe is over.
    Temporary queues at brokers have the prefix, too; other reply addresses of clients do not.
    """
    return Address.parse(row["address"] or "").name.startswith(MESH_PREFIX)
