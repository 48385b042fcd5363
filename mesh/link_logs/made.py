"""The files of a report beside its tables: the page, and what it says as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass

from linklogs.writing import write
from mesh.link_logs.finding import Finding
from mesh.link_logs.findings import findings
from mesh.link_logs.nicknames import NICKNAMES, nicknamed
from mesh.link_logs.page import page
from mesh.link_logs.summary import Summary


@dataclass(frozen=True, slots=True)
class Made:
    summary: Summary
    findings: list[Finding]


def made(summary: Summary) -> Made:
    """Written into the folder of its order, which is there."""
    if summary.order.has_nicknames:
        summary = nicknamed(summary)
        write(summary.tables[NICKNAMES], summary.order.out / "tables", NICKNAMES, summary.order.tz)
    found = findings(summary)
    told = {**summary.to_map(), "findings": [finding.to_map(summary.order.tz) for finding in found]}
    document = json.dumps(told, indent=1, ensure_ascii=False, default=str)
    (summary.order.out / "summary.json").write_text(document + "\n", "utf-8")
    (summary.order.out / "report.html").write_text(page(summary, found), "utf-8")
    return Made(summary, found)
