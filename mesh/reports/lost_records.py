"""Count the records that are in no figure of a report, and their share of all records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mesh.reports.summary import Summary


@dataclass(frozen=True, slots=True)
class LostRecords:
    """Records that are in no figure. ``share``: from 0 to 1, of all records, which are ``total``."""

    records: int
    total: int
    share: float
    nodes: tuple[str, ...]


def lacking(summary: Summary, why: Literal["lost", "untold"]) -> LostRecords:
    """Count the records in the table `missing`, lost or of unknown runs."""
    rows = summary.rows("missing")
    records = sum(row[why] for row in rows)
    known = sum(row["moved"] + row["told"] + row["lost"] + row["untold"] for row in rows)
    nodes = tuple(sorted({row["node"] for row in rows if row[why]}))
    return LostRecords(records, known, records / known if records else 0.0, nodes)
