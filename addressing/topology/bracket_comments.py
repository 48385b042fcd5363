"""A pattern that begins a comment within brackets, so that YAML misses the closing bracket of the line."""

from __future__ import annotations

import re

# `{#: anycast}`, `[orders, #]`
_IN_BRACKETS = re.compile(r".*?[\[{,]\s*(?P<found>#(?:[./][^\s:,\]}]*)?)\s*(?=[:,\]}])")


def swallowed_in_brackets(line: str) -> tuple[int, str] | None:
    """Return column and text of a pattern that hides the closing bracket of its line, or None."""
    found = _IN_BRACKETS.match(line)
    return (found.start("found"), found["found"]) if found else None
