"""A mistake at a path of the data, before its line and column are known."""

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
    """A mistake. ``path`` leads to the value at fault, or with ``at_key`` to its key; ``span`` overrides both.

    ``relies_on`` are paths of values without which there is no mistake: while one is in doubt, so is the mistake.
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
    """Return the known word that was probably meant; ``likeness`` is 0 for any word, 1 for the same word only."""
    # Imported where needed: a right file needs no suggestions.
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[found[0]] if found else None


def hint_for(word: str, known: Collection[str], *, title: str = "known") -> str:
    """Return the word that was probably meant, and the known words, as a sentence."""
    suggestion = nearest(word, known)
    question = f"did you mean {suggestion!r}?  " if suggestion else ""
    return f"{question}{title}: {listing(known)}"


def listing(names: Collection[str]) -> str:
    if not names:
        return "none"
    shown = list(names)[:_MOST_NAMES_SHOWN]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more
