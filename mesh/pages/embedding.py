"""Makes a report one HTML page that needs no network and no other file: data, scripts and styles are embedded.

Templates escape all text of the report. The page's content security policy allows scripts and styles only by their
hash, so that unescaped text could still not run.
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
# These characters could end a script element or begin a comment within it; JSON reads their escapes as the same
# characters.
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
    """Return what a page's template embeds: `script`, `style`, `data`, and the `policy` that forbids other scripts.

    The files of ``scripts`` and ``styles`` are added to those that all pages have.
    """
    script = licensed(_joined((*CHARTS, *scripts)))
    style = _joined((*LOOK, *styles))
    return {
        "policy": _policy(script, style),
        "script": Markup(script),
        "style": Markup(style),
        "data": Markup(DATA_BEGINS + _embedded(data) + DATA_ENDS),
    }


def or_dash(words_for: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a formatter like ``words_for`` that shows None as a dash, and allows no line break within a figure."""
    return lambda value: "–" if value is None else words_for(value).replace(" ", "\N{NO-BREAK SPACE}")  # noqa: RUF001


def code(text: str) -> Markup:
    """Return ``text`` as HTML, in which the parts in backticks are code elements."""
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
    """Replace infinity and NaN by None, because JSON has neither, and a page with a missing figure is better than no
    page.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
