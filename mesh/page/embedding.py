"""A report as one HTML page that needs nothing else: no network, no other file; its data inside of it, as JSON.

What is told is escaped by the templates; scripts and styles run by their hash only, so that text which got past that
would still not run.
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

HERE = Path(__file__).parent
CHARTS = (HERE / "uPlot.iife.min.js", HERE / "windows.js")
LOOK = (HERE / "uPlot.min.css", HERE / "page.css")
DATA_BEGINS = '<script type="application/json" id="report">'
DATA_ENDS = "</script>"
# What could end a script element, or begin a comment in one, read as JSON is the same character.
UNSAFE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def environment(templates: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def parts(scripts: tuple[Path, ...], styles: tuple[Path, ...], data: dict[str, Any]) -> dict[str, Any]:
    """What each page shows beside its own: `script`, `style` and `data`, and the `policy` that allows no others."""
    script = licensed(_joined((*CHARTS, *scripts)))
    style = _joined((*LOOK, *styles))
    return {
        "policy": _policy(script, style),
        "script": Markup(script),
        "style": Markup(style),
        "data": Markup(DATA_BEGINS + _embedded(data) + DATA_ENDS),
    }


def or_dash(words_for: Callable[[Any], str]) -> Callable[[Any], str]:
    """With a figure and its unit on one line."""
    return lambda value: "–" if value is None else words_for(value).replace(" ", "\N{NO-BREAK SPACE}")  # noqa: RUF001


def code(text: str) -> Markup:
    """What is in backticks as code."""
    pieces = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if i % 2 else piece for i, piece in enumerate(pieces)
    )


def licensed(script: str) -> str:
    licence = (HERE / "uPlot.LICENSE.txt").read_text("utf-8")
    return f"/*! uPlot:\n{licence}*/\n{script}"


def _joined(paths: tuple[Path, ...]) -> str:
    return "\n".join(path.read_text("utf-8") for path in paths)


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
