"""Counts the records of link logs that are in no figure of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mesh.reports.summary import Summary


@dataclass(frozen=True, slots=True)
class LostRecords:
    """Records in no figure of a report: their number, the number of all records, the share from 0 to 1, and the
    nodes.
    """

    records: int
    total: int
    share: float
    nodes: tuple[str, ...]


def lacking(summary: Summary, why: Literal["lost", "untold"]) -> LostRecords:
    """Count the records that nodes lost (``lost``), or whose run no file describes (``untold``), from the table
    `missing`.
    """
    rows = summary.rows("missing")
    records = sum(row[why] for row in rows)
    known = sum(row["moved"] + row["told"] + row["lost"] + row["untold"] for row in rows)
    nodes = tuple(sorted({row["node"] for row in rows if row[why]}))
    return LostRecords(records, known, records / known if records else 0.0, nodes)
