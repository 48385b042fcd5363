"""Warnings (AM009) about a '#' that was meant as an address pattern, but that YAML takes for a comment and drops."""

from __future__ import annotations

import re
from collections.abc import Iterator

from addressing.topology.document import Document
from addressing.topology.problem import Path, Problem, TextSpan

# Matches a line with a key such as `#: anycast` or `#.eu: queue`, which YAML took for a comment. No comment that was
# meant as one begins like this.
_ADDRESS = re.compile(r"\s+(?P<found>#(?:[./][^\s:]*)?):(?=\s|$)")
# Matches a line with a value such as `send: #` or `- #.eu`, a pattern that YAML took for a comment.
_VALUE = re.compile(r"[^#]*\s(?P<found>#(?:[./]\S*)?)\s*$")
# Matches a line in which # stands before an address's type, as in `orders: #queue`, and YAML took both for a comment.
_WORD = re.compile(r"[^#]*\s(?P<found>#\w+)\s*$")


def swallowed(document: Document, text: str) -> Iterator[Problem]:
    """Yield a warning for each pattern that YAML took for a comment: a key or value below ``addresses``.

    Values of a user's ``send`` and ``receive`` count, too, as does an address's type with # before it.
    """
    lines = text.splitlines()
    for path, spot in document.spots.items():
        if _may_be_pattern(path) and spot.is_empty:
            pattern = _WORD if path[0] == "addresses" and len(path) == 2 else _VALUE
            yield from _found(pattern, (spot.key or spot.value).line, lines)
    for number in _lines_of_addresses(document, lines):
        yield from _found(_ADDRESS, number, lines)


def _may_be_pattern(path: Path) -> bool:
    return (path[:1] == ("users",) and path[2:3] in (("send",), ("receive",))) or path[:1] == ("addresses",)


def _found(pattern: re.Pattern[str], number: int, lines: list[str]) -> Iterator[Problem]:
    found = pattern.match(lines[number]) if number < len(lines) else None
    if found:
        word, col = found["found"], found.start("found")
        meant = f"write {word[1:]!r}" if pattern is _WORD else f'quote it, "{word}"'
        message = f"{word!r} begins a comment: YAML does not read it"
        fix = f"{meant}; for a comment, put a space after '#'."
        yield Problem((), "AM009", message, fix=fix, severity="warning", span=TextSpan(number, col, len(word)))


def _lines_of_addresses(document: Document, lines: list[str]) -> Iterator[int]:
    spot = document.spots.get(("addresses",))
    if spot is None or spot.key is None:
        return
    for number in range(spot.key.line + 1, len(lines)):
        if lines[number][:1].strip() and not lines[number].startswith("#"):
            return
        yield number
