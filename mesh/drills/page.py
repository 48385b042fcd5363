"""The report of a drill as one HTML page that needs nothing else: no network, no other file; and its data read back.

What comes from the drill is escaped by the templates; scripts and styles run by their hash only, so that text which got
past that would still not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mesh.drills import page_mesh, page_view, words
from mesh.drills.report import Report

HERE = Path(__file__).parent / "page"
SCRIPTS = ("uPlot.iife.min.js", "charts.js", "page.js")
STYLES = ("uPlot.min.css", "page.css")
DATA_BEGINS = '<script type="application/json" id="report">'
DATA_ENDS = "</script>"
# What could end a script element, or begin a comment in one, read as JSON is the same character.
UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def page(report: Report) -> str:
    script = _licensed(_joined(SCRIPTS))
    style = _joined(STYLES)
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            headline=words.Headline.of(report),
            view=page_view.View(report),
            scenes=page_mesh.scenes(report),
            policy=_policy(script, style),
            script=Markup(script),
            style=Markup(style),
            data=Markup(DATA_BEGINS + _embedded(report.to_map()) + DATA_ENDS),
        )
    )


def read_back(html: str) -> dict[str, Any]:
    """The map of the report that a page was made of. Raise ValueError if it is no such page."""
    _, begins, rest = html.partition(DATA_BEGINS)
    data, ends, _ = rest.partition(DATA_ENDS)
    if not begins or not ends:
        raise ValueError("this is no report of a drill: there is no data in it")
    found = json.loads(data)
    if not isinstance(found, dict) or "verdict" not in found:
        raise ValueError("this is no report of a drill: its data has no verdict")
    return found


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        ms=_or_dash(words.duration), s=_or_dash(words.seconds), n=_or_dash(words.count), at=_at, code=_code
    )
    made.globals.update(not_accepted=words.not_accepted)
    return made


def _or_dash(words_for: Callable[[Any], str]) -> Callable[[Any], str]:
    """With a figure and its unit on one line."""
    return lambda value: "–" if value is None else words_for(value).replace(" ", "\N{NO-BREAK SPACE}")  # noqa: RUF001


def _at(time_s: float) -> str:
    """A time of the drill, as on the axes."""
    return f"{round(time_s, 3):g}\N{NO-BREAK SPACE}s"


def _code(text: str) -> Markup:
    """What is in backticks as code."""
    parts = text.split("`")
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


def _joined(names: tuple[str, ...]) -> str:
    return "\n".join((HERE / name).read_text("utf-8") for name in names)


def _licensed(script: str) -> str:
    licence = (HERE / "uPlot.LICENSE.txt").read_text("utf-8")
    return f"/*! uPlot:\n{licence}*/\n{script}"


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(data: dict[str, Any]) -> str:
    return json.dumps(_finite(data), allow_nan=False, separators=(",", ":")).translate(UNSAFE)


def _finite(value: Any) -> Any:
    """JSON has no infinity, and a page without data is worse than a figure that is missing."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
