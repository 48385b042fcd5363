"""Keeps the link logs that the nodes of a drill recorded, and makes a report of these link logs on request."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from mesh.client.errors import MeshError
from mesh.drills.report import DrillReport
from mesh.terminal.failure import CommandFailed, describe_file_error
from mesh.terminal.output import Output

LOGS = "linklogs"
REPORT = "linklogs-report"
WINDOW_US = 1_000_000
"""Window of the link log report: one second, because a drill is short."""


@dataclass(frozen=True, slots=True)
class DrillLinkLogs:
    """Paths of a drill's link logs (``logs``, a folder) and of their report (``page``); None for a missing one."""

    logs: Path | None = None
    page: Path | None = None

    def told_by(self, report: DrillReport, html: Path) -> DrillReport:
        """Return the drill's report with the paths of link logs and link log report, relative to the drill's page
        ``html``.
        """
        return replace(report, link_logs=_seen(self.logs, html), link_log_report=_seen(self.page, html))


def keep_link_logs(recorded: Path | None, folder: Path, *, is_reported: bool, out: Output) -> DrillLinkLogs:
    """Copy the recorded link logs to ``folder``, and make a report of them if ``is_reported``.

    Raise CommandFailed if the link logs cannot be copied. A failure to make the report is only printed, because the
    drill is valid without it.
    """
    if recorded is None or not any(recorded.rglob("*.parquet")):
        if is_reported:
            out.say("link logs: no records, since `link_logs` of the topology is off or keeps none")
        return DrillLinkLogs()
    logs = folder / LOGS
    try:
        for each in (logs, folder / REPORT):
            # The link logs, and their report, of a previous run that was kept in the same folder are removed.
            shutil.rmtree(each, ignore_errors=True)
        shutil.copytree(recorded, logs)
    except OSError as error:
        raise CommandFailed(f"the link logs of the drill cannot be kept: {describe_file_error(error)}") from None
    return DrillLinkLogs(logs, _report_of(logs, folder / REPORT, out) if is_reported else None)


def _report_of(logs: Path, folder: Path, out: Output) -> Path | None:
    from linklogs.moments import TimeSpan
    from linklogs.time_options import zone_of
    from mesh.reports.report import make
    from mesh.reports.report_request import ReportRequest

    out.say("link logs: making their report")
    order = ReportRequest(str(logs), folder, TimeSpan(), WINDOW_US, zone_of("UTC"), None, "local[*]", ())
    try:
        make(order, replace(out, is_quiet=True))
    except MeshError as failed:
        out.say(f"link logs: cannot make their report: {failed.message}")
        return None
    return folder / "report.html"


def _seen(path: Path | None, html: Path) -> str:
    return "" if path is None else os.path.relpath(path, html.parent)
