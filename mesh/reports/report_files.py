"""Writes the files of a report beside its tables: the HTML page, and the summary with findings as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass

from linklogs.table_files import write
from mesh.reports.finding import ReportFinding
from mesh.reports.findings import findings
from mesh.reports.page import page
from mesh.reports.short_names import NICKNAMES, nicknamed
from mesh.reports.summary import Summary


@dataclass(frozen=True, slots=True)
class ReportFiles:
    summary: Summary
    findings: list[ReportFinding]


def made(summary: Summary) -> ReportFiles:
    """Write `report.html` and `summary.json` into the folder of the summary's request, which must exist.

    If the request asks for nicknames, both show nicknames, and a table of these is written.
    """
    if summary.order.has_nicknames:
        summary = nicknamed(summary)
        write(summary.tables[NICKNAMES], summary.order.out / "tables", NICKNAMES, summary.order.tz)
    found = findings(summary)
    told = {**summary.to_map(), "findings": [finding.to_map(summary.order.tz) for finding in found]}
    document = json.dumps(told, indent=1, ensure_ascii=False, default=str)
    (summary.order.out / "summary.json").write_text(document + "\n", "utf-8")
    (summary.order.out / "report.html").write_text(page(summary, found), "utf-8")
    return ReportFiles(summary, found)
