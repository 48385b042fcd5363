"""A mistake in a topology file, at a path of the file's data, before its line and column are known."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from addressing.errors import Severity

Path = tuple[str | int, ...]

_MOST_NAMES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Part of a file: line and column count from 0, as YAML marks do; ``width`` is within the first line."""

    line: int
    col: int
    width: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake or warning. ``path`` leads to the value at fault, with ``at_key`` to its key; ``span`` overrides both.

    ``relies_on`` are paths of other values that the mistake follows from: if any of the values is itself broken, the
    mistake is not reported.
    """

    path: Path
    code: str
    message: str
    hint: str = ""
    fix: str = ""
    suggestion: str | None = None
    at_key: bool = False
    severity: Severity = "error"
    span: TextSpan | None = None
    relies_on: tuple[Path, ...] = ()


def nearest(word: str, known: Collection[str], *, likeness: float = 0.5) -> str | None:
    """Return the word of ``known`` that ``word`` was probably meant to be; None if no word is like enough.

    ``likeness`` is the least likeness: 0 for any word, 1 for the same word only. Upper and lower case are alike.
    """
    # The import of `difflib`, which takes time, is here, since a file without mistakes needs no suggestions.
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[found[0]] if found else None


def hint_for(word: str, known: Collection[str], *, title: str = "known") -> str:
    """Return a hint for the unknown ``word``: the known word that was probably meant, and up to 8 known words."""
    suggestion = nearest(word, known)
    question = f"did you mean {suggestion!r}?  " if suggestion else ""
    return f"{question}{title}: {listing(known)}"


def listing(names: Collection[str]) -> str:
    if not names:
        return "none"
    shown = list(names)[:_MOST_NAMES_SHOWN]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more
