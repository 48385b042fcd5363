"""How many records are in no figure of a report, and what share of all that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mesh.link_logs.summary import Summary


@dataclass(frozen=True, slots=True)
class Lacking:
    """``share``: from 0 to 1, of all records that there were, which are ``total``."""

    records: int
    total: int
    share: float
    nodes: tuple[str, ...]


def lacking(summary: Summary, why: Literal["lost", "untold"]) -> Lacking:
    """For one of the two reasons that the table of what is missing has."""
    rows = summary.rows("missing")
    records = sum(row[why] for row in rows)
    known = sum(row["moved"] + row["told"] + row["lost"] + row["untold"] for row in rows)
    nodes = tuple(sorted({row["node"] for row in rows if row[why]}))
    return Lacking(records, known, records / known if records else 0.0, nodes)
