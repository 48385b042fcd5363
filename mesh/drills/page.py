"""Makes the report of a drill as one self-contained HTML page, and reads the data of such a page back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment

from mesh.drills import page_mesh, page_view, words
from mesh.drills.report import DrillReport
from mesh.pages.embedding import DATA_BEGINS, DATA_ENDS, code, environment, or_dash, parts

HERE = Path(__file__).parent / "page"
SCRIPTS = (HERE / "charts.js", HERE / "page.js")


def page(report: DrillReport) -> str:
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            headline=words.Headline.of(report),
            view=page_view.PageView(report),
            scenes=page_mesh.scenes(report),
            **parts(SCRIPTS, (), report.to_map()),
        )
    )


def read_back(html: str) -> dict[str, Any]:
    """Return the report's data from the HTML of a drill's page. Raise ValueError for any other page."""
    _, begins, rest = html.partition(DATA_BEGINS)
    data, ends, _ = rest.partition(DATA_ENDS)
    if not begins or not ends:
        raise ValueError("not a report of a drill: the file has no data")
    found = json.loads(data)
    if not isinstance(found, dict) or "verdict" not in found:
        raise ValueError("not a report of a drill: its data has no verdict")
    return found


def _environment() -> Environment:
    made = environment(HERE)
    made.filters.update(ms=or_dash(words.duration), s=or_dash(words.seconds), n=or_dash(words.count), at=_at, code=code)
    made.globals.update(not_accepted=words.not_accepted)
    return made


def _at(time_s: float) -> str:
    """Format a time of the drill as seconds with their unit, as on the axes of the charts."""
    return f"{round(time_s, 3):g}\N{NO-BREAK SPACE}s"
