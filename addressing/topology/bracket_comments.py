"""Finds an address pattern with `#` in brackets: YAML takes `#` for a comment, and misses the closing bracket."""

from __future__ import annotations

import re

# Matches lines such as `{#: anycast}` and `[orders, #]`.
_IN_BRACKETS = re.compile(r".*?[\[{,]\s*(?P<found>#(?:[./][^\s:,\]}]*)?)\s*(?=[:,\]}])")


def swallowed_in_brackets(line: str) -> tuple[int, str] | None:
    """Return (column, text) of a pattern that begins with `#` and hides the closing bracket of ``line``; else None."""
    found = _IN_BRACKETS.match(line)
    return (found.start("found"), found["found"]) if found else None
