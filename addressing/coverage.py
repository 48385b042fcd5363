"""Whether a pattern covers a filter: whether the pattern matches each address that the filter matches.

A permission to receive from `news.*` must not let a client receive from the filter `news.#`, which matches more. The
meaning of wildcards and delimiters is that of `addressing.pattern`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_DELIMITER = re.compile(r"(?=[./])")


def covers(pattern: str, filter_: str) -> bool:
    """Return True only if ``pattern`` matches each address that ``filter_`` matches.

    The filter's tokens are matched against the pattern as if they were an address, where only ``#`` matches ``#``. So
    False may be returned for a filter that no single token-by-token match covers: `a.*.#` does not cover `a.#.*`.
    """
    tokens = _DELIMITER.split(pattern)
    states: Iterable[_State] = [(0, False)]
    for number, token in enumerate(_DELIMITER.split(filter_)):
        states = _after(tokens, _with_skips(tokens, states), token, is_first=number == 0)
    return any(at == len(tokens) for at, _ in _with_skips(tokens, states))


_State = tuple[int, bool]
"""The number of the pattern's next token, and whether this token is a ``#`` that has matched a token for certain."""


def _with_skips(tokens: list[str], states: Iterable[_State]) -> set[_State]:
    """Return ``states`` and those in which the next tokens of the pattern, all ``#``, match no token or no more."""
    found = set(states)
    for at, _ in list(found):
        while at < len(tokens) and _bare(tokens[at]) == "#":
            at += 1
            found.add((at, False))
    return found


def _after(tokens: list[str], states: Iterable[_State], token: str, *, is_first: bool) -> set[_State]:
    """Return the states after the filter's next ``token``; ``is_first``: the token is the filter's first."""
    found: set[_State] = set()
    bare = _bare(token)
    for at, has_matched in states:
        if at == len(tokens):
            continue
        wanted = _bare(tokens[at])
        # The delimiter before an address's first token counts for nothing.
        is_delimited = is_first or at == 0 or tokens[at][:1] == token[:1]
        if wanted == "#":
            if has_matched or is_delimited:
                # A '#' of the filter may stand for no token, and then the token behind it is the first one to match.
                found.add((at, has_matched or at == 0 or bare != "#"))
        elif wanted == "*":
            if bare != "#" and is_delimited:
                found.add((at + 1, False))
        elif tokens[at] == token or (is_first and wanted == bare):
            found.add((at + 1, False))
    return found


def _bare(token: str) -> str:
    return token.lstrip("./")
