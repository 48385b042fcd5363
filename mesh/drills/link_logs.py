"""What the nodes of a drill recorded: kept beside its page, and where somebody asks for it, in a report of its own."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from mesh.drills.report import Report
from mesh.failure import CommandFailed
from mesh.output import Output

LOGS = "linklogs"
REPORT = "linklogs-report"
WINDOW_US = 1_000_000
"""A drill is short."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """``logs``: the folder that has them; ``page``: of the report of them. None where there is none."""

    logs: Path | None = None
    page: Path | None = None

    def told_by(self, report: Report, html: Path) -> Report:
        """The report of a drill whose page is ``html`` leads there."""
        return replace(report, link_logs=_seen(self.logs, html), link_log_report=_seen(self.page, html))


def keep_link_logs(recorded: Path | None, folder: Path, *, is_reported: bool, out: Output) -> Recorded:
    """Raise CommandFailed where they cannot be kept. A report that cannot be made is said; the drill counts without."""
    if recorded is None or not any(recorded.rglob("*.parquet")):
        if is_reported:
            out.say("link logs: nothing was recorded, as `link_logs` of the topology says")
        return Recorded()
    logs = folder / LOGS
    try:
        for each in (logs, folder / REPORT):
            # Of the run before, where the folder is the same.
            shutil.rmtree(each, ignore_errors=True)
        shutil.copytree(recorded, logs)
    except OSError as error:
        raise CommandFailed(f"{error.filename}: {error.strerror}: the link logs cannot be kept") from None
    return Recorded(logs, _report_of(logs, folder / REPORT, out) if is_reported else None)


def _report_of(logs: Path, folder: Path, out: Output) -> Path | None:
    from linklogs.asked import zone_of
    from linklogs.moments import Span
    from mesh.link_logs.order import Order
    from mesh.link_logs.report import make

    out.say("link logs: making the report of them")
    order = Order(str(logs), folder, Span(), WINDOW_US, zone_of("UTC"), None, "local[*]", ())
    try:
        make(order, replace(out, is_quiet=True))
    except CommandFailed as failed:
        out.say(f"link logs: no report of them: {failed.message}")
        return None
    return folder / "report.html"


def _seen(path: Path | None, html: Path) -> str:
    return "" if path is None else os.path.relpath(path, html.parent)
