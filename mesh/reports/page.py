"""Makes the report of link logs as one self-contained HTML page, with findings, charts and tables."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import Environment

from mesh.pages.embedding import code, environment, or_dash, parts
from mesh.reports import drawings, words
from mesh.reports.finding import ReportFinding, shown
from mesh.reports.lost_records import lacking
from mesh.reports.series import series, shaded
from mesh.reports.summary import Summary, format_time
from mesh.reports.terminal import headline
from mesh.terminal.version import read_version
from recording.columns import BUCKET_ERROR

HERE = Path(__file__).parent / "page"
SCRIPTS = (HERE / "charts.js",)
STYLES = (HERE / "report.css",)
MOST_ROWS = 50
BY_WINDOW = "_by_window"


def page(summary: Summary, found: list[ReportFinding]) -> str:
    charts = {**series(summary), **shaded(summary)}
    return (
        _environment(summary.order.tz)
        .get_template("report.html")
        .render(
            summary=summary,
            headline=headline(summary),
            findings=found,
            totals=_totals(summary),
            heat=drawings.heat_map(summary),
            bars=drawings.distribution(summary),
            mesh=drawings.topology(summary),
            tables=[_shown(name, summary) for name in summary.tables if not name.endswith(BY_WINDOW)],
            error=BUCKET_ERROR,
            charted_us=charts["window_s"] * 1e6,
            outages=charts["outages"],
            version=read_version(),
            began=format_time(summary.began_us, summary.order.tz),
            **parts(SCRIPTS, STYLES, {"tz": summary.order.tz.key, **charts}),
        )
    )


def _totals(summary: Summary) -> dict[str, Any]:
    """Return the totals of the messages that clients sent, as the page shows them at its top.

    If clients sent none, counts are 0, and rate and latencies are None.
    """
    row = summary.row("mesh", side="in", peer="client") or {}
    messages = row.get("messages", 0)
    return {
        "messages": messages,
        "size_bytes": row.get("size_bytes", 0),
        "per_s": row.get("messages_per_s"),
        "not_accepted": words.not_accepted(row) if row else 0,
        "p50_us": row.get("p50_us"),
        "p99_us": row.get("p99_us"),
        "max_us": row.get("max_us"),
        "missing": lacking(summary, "lost").share + lacking(summary, "untold").share,
    }


def _shown(name: str, summary: Summary) -> dict[str, Any]:
    table = summary.tables[name]
    rows = table.slice(0, MOST_ROWS).to_pylist()
    columns = [column for column in table.column_names if any(row[column] is not None for row in rows)]
    cells = [[_cell(column, row[column], summary) for column in columns] for row in rows]
    numeric = {column for column in columns if any(isinstance(row[column], int | float) for row in rows)}
    return {
        "name": name,
        "title": name.replace("_", " "),
        "columns": [(_heading(column), column in numeric) for column in columns],
        "rows": cells,
        "count": table.num_rows,
    }


def _heading(column: str) -> str:
    for suffix in ("_us", "_bytes"):
        column = column.removesuffix(suffix)
    return {"size": "bytes"}.get(column, column.replace("_per_s", " a second").replace("_", " "))


def _cell(column: str, value: Any, summary: Summary) -> str:
    """Format a table's cell for readers; the end of the column's name tells the unit, and None becomes empty text."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return shown(value, summary.order.tz)
    if column.endswith("_us"):
        return words.duration(value)
    if column.endswith("_bytes"):
        return words.size(value)
    if column == "share":
        return words.share(value)
    if isinstance(value, float):
        return words.rate(value)
    return f"{value:,}" if isinstance(value, int) and column not in NUMBERS else str(value)


NUMBERS = ("run", "connection", "link", "incoming", "outgoing", "queue", "rank")
"""Columns of identifying numbers, which are shown without separators of thousands."""


def _environment(tz: ZoneInfo) -> Environment:
    made = environment(HERE)
    made.filters.update(
        us=or_dash(words.duration),
        size=or_dash(words.size),
        n=or_dash(words.count),
        rate=or_dash(words.rate),
        share=or_dash(words.share),
        code=code,
        at=partial(shown, tz=tz),
    )
    return made
