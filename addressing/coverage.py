"""Whether a pattern covers a filter, and whether two patterns may match the same address.

A pattern covers a filter if it matches each address that the filter matches. A permission to receive from `news.*` must
not let a client receive from the filter `news.#`, which matches more. The meaning of wildcards and delimiters is that
of `addressing.pattern`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

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


def may_overlap(one: str, other: str) -> bool:
    """Return False only if no address matches both patterns; a few pairs without a common address count, too."""
    tokens, others = _DELIMITER.split(one), _DELIMITER.split(other)
    places, known = [_Place(0, 0)], {_Place(0, 0)}
    while places:
        place = places.pop()
        if (place.at, place.there) == (len(tokens), len(others)):
            return True
        mirrored = (step.mirror() for step in _steps(others, tokens, place.mirror()))
        for step in (*_steps(tokens, others, place), *mirrored):
            if step not in known:
                known.add(step)
                places.append(step)
    return False


class _Place(NamedTuple):
    """The numbers of the next tokens of two patterns, and whether each is a ``#`` that has matched a token already."""

    at: int
    there: int
    has_begun: bool = False
    has_begun_there: bool = False

    def mirror(self) -> _Place:
        """Return the place as it is with the two patterns exchanged."""
        return _Place(self.there, self.at, self.has_begun_there, self.has_begun)


def _steps(tokens: list[str], others: list[str], place: _Place) -> Iterator[_Place]:
    """Yield the places after one more token of a common address, or after a ``#`` of ``tokens`` that ends."""
    at, there, has_begun, has_begun_there = place
    if at == len(tokens):
        return
    mine, is_hash = tokens[at], _bare(tokens[at]) == "#"
    if is_hash:
        yield _Place(at + 1, there, False, has_begun_there)
    if there == len(others):
        return
    its = others[there]
    # The delimiter before an address's first token counts for nothing.
    may_be_first = all(_bare(token) == "#" for token in (*tokens[:at], *others[:there]))
    is_delimited = may_be_first or at == 0 or there == 0 or mine[:1] == its[:1]
    if is_hash and _bare(its) == "#":
        if has_begun or has_begun_there or is_delimited:
            yield _Place(at, there, True, True)
    elif is_hash:
        if has_begun or is_delimited:
            yield _Place(at, there + 1, True, False)
    elif _bare(its) != "#" and is_delimited and (_bare(mine) == _bare(its) or "*" in (_bare(mine), _bare(its))):
        yield _Place(at + 1, there + 1)


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
