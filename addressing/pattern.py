"""Address patterns, and the best match for an address among many patterns.

An address is tokens, separated by ``.`` or ``/``. In a pattern ``*`` stands for exactly one token and ``#`` for any
number of tokens, also none, together with the delimiter before it: ``news.#`` matches ``news`` and ``news.eu.paris``.
Delimiters are part of the address: ``news.#`` does not match ``news/eu``, but ``#`` swallows delimiters of both kinds.

Among several matches, the leftmost difference decides: a literal token is better than ``*``, ``*`` better than the end
of a pattern, and the end better than ``#``. So ``a`` wins over ``a.#``, and ``a.#.z`` over ``a.#``. The alphabet
decides between patterns that are still equal, never the order of declaration: two routers must not disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from addressing.address import is_internal, normalize
from addressing.errors import BadValue

MAX_ADDRESS_CHARS = 1024

T = TypeVar("T")

_DELIMITER = re.compile(r"([./])")
FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\x9f\ufffe\uffff]")
"""The expression that finds a character that no address, pattern or filter may have."""
_USER = "${user}"


class PatternError(BadValue):
    """The fault of a text that is not an address or pattern that a topology file may declare."""

    def __init__(self, message: str, code: str = "AM401") -> None:
        super().__init__(message, code)


def check_pattern(pattern: str) -> str:
    """Return ``pattern``; raise PatternError if a topology file may not declare an address or pattern of this text."""
    if not pattern:
        raise PatternError("expected an address or pattern, got an empty text")
    if len(pattern) > MAX_ADDRESS_CHARS:
        raise PatternError(f"expected an address of at most {MAX_ADDRESS_CHARS} characters, got {len(pattern)}")
    bad = FORBIDDEN.search(pattern)
    if bad:
        raise PatternError(f"{pattern!r} contains {bad[0]!r}: an address has no white space and no control characters")
    if "${" in pattern:
        raise PatternError(
            f"{pattern!r}: the only variable is {_USER}, and it is allowed only in send and receive of users"
        )
    if normalize(pattern) != pattern:
        raise PatternError(f"{pattern!r}: expected the address without scheme and host, {normalize(pattern)!r}")
    if is_internal(pattern):
        raise PatternError(f"the address {pattern!r} is reserved for the mesh itself", "AM402")
    _check_wildcards(pattern)
    return pattern


def check_permission_pattern(pattern: str) -> str:
    """Return ``pattern`` of a user's permissions; raise PatternError as `check_pattern` does, but allow ``${user}``."""
    check_pattern(pattern.replace(_USER, "user"))
    return pattern


def for_user(pattern: str, user: str) -> str:
    """Return ``pattern`` with the name ``user`` in place of ``${user}``; names of users have no wildcards."""
    return pattern.replace(_USER, user)


def is_pattern(address: str) -> bool:
    """Say whether ``address`` is a pattern: one of its tokens is the wildcard ``*`` or ``#``."""
    # Look for the characters first, since a broker asks for the address of each message to a topic.
    return ("*" in address or "#" in address) and any(token.lstrip("./") in ("*", "#") for token in _split(address))


def _check_wildcards(pattern: str) -> None:
    for token in _split(pattern):
        bare = token.lstrip("./")
        if bare not in ("*", "#") and ("*" in bare or "#" in bare):
            wildcard = "*" if "*" in bare else "#"
            raise PatternError(f"{pattern!r}: {wildcard!r} must stand for a whole token, not be part of {bare!r}")


def _split(address: str) -> list[str]:
    """Return the tokens of ``address``, each with its delimiter in front: ``a.b/c`` gives ``a``, ``.b``, ``/c``."""
    parts = _DELIMITER.split(address)
    return [parts[0], *(delimiter + token for delimiter, token in zip(parts[1::2], parts[2::2], strict=True))]


class PatternMap(Generic[T]):
    """A mapping from address patterns to values; ``find`` returns the value of the pattern that matches best.

    The look-up of an address that is itself a key is one dict access, and so is any look-up if no key has wildcards.
    Another look-up walks a tree of the patterns' tokens, each tree node at most once, so no address, however made,
    costs more than (tokens of the address) x (tokens of all patterns).
    """

    def __init__(self, entries: Mapping[str, T]) -> None:
        self._exact: dict[str, T] = {}
        self._root: _Branch[T] = _Branch()
        self._has_patterns = False
        for pattern, value in entries.items():
            if is_pattern(pattern):
                self._has_patterns = True
                self._root.plant(_split(pattern), value)
            else:
                self._exact[pattern] = value

    def find(self, address: str) -> T | None:
        """Return the value of the pattern that matches ``address``, in normal form, best; None without a match.

        An address of more than MAX_ADDRESS_CHARS matches no wildcard.
        """
        exact = self._exact.get(address)
        if exact is not None or not self._has_patterns or len(address) > MAX_ADDRESS_CHARS:
            return exact
        return self._root.search(_split(address), (0,))


class PatternSet:
    """A set of address patterns: ``address in patterns`` says whether any of the patterns matches the address."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._map = PatternMap(dict.fromkeys(patterns, True))

    def __contains__(self, address: str) -> bool:
        return self._map.find(address) is not None


class _Branch(Generic[T]):
    """A node of the pattern tree: all pattern tokens that may follow the tokens on the way to this node.

    Arguments ``starts`` are the positions in the address where the tokens on the way end; a ``#`` leaves several.
    """

    __slots__ = ("_hashes", "_literals", "_stars", "_value")

    def __init__(self) -> None:
        self._literals: dict[str, _Branch[T]] = {}
        self._stars: dict[str, _Branch[T]] = {}
        self._hashes: dict[str, _Branch[T]] = {}
        self._value: T | None = None

    def plant(self, tokens: Sequence[str], value: T) -> None:
        if not tokens:
            self._value = value
            return
        kind = {"*": self._stars, "#": self._hashes}.get(tokens[0].lstrip("./"), self._literals)
        kind.setdefault(tokens[0], _Branch()).plant(tokens[1:], value)

    def search(self, tokens: Sequence[str], starts: Sequence[int]) -> T | None:
        """Return the value of the best pattern that leads through this node and matches the tokens from ``starts`` on.

        The module's docstring says which match is best. None without a match.
        """
        open_starts = [start for start in starts if start < len(tokens)]
        for step, ends in self._single_steps(tokens, open_starts):
            found = step.search(tokens, ends)
            if found is not None:
                return found
        if self._value is not None and starts[-1] == len(tokens):
            return self._value
        for label in sorted(self._hashes):
            first = next((start for start in open_starts if _fits(tokens, start, label)), len(tokens))
            swallowed = range(first + 1, len(tokens) + 1)
            found = self._hashes[label].search(tokens, sorted({*starts, *swallowed}))
            if found is not None:
                return found
        return None

    def _single_steps(
        self, tokens: Sequence[str], open_starts: Sequence[int]
    ) -> Iterable[tuple[_Branch[T], Sequence[int]]]:
        if self._literals:
            yield from self._literal_steps(tokens, open_starts)
        for label in sorted(self._stars):
            ends = [start + 1 for start in open_starts if _fits(tokens, start, label)]
            if ends:
                yield self._stars[label], ends

    def _literal_steps(
        self, tokens: Sequence[str], open_starts: Sequence[int]
    ) -> Iterable[tuple[_Branch[T], Sequence[int]]]:
        ends: dict[str, list[int]] = {}
        for start in open_starts:
            # The first token of an address has no delimiter in front. After a leading '#' that matched no token, the
            # pattern's next token has a delimiter, which may then be '.' or '/'.
            labels = (tokens[0], "." + tokens[0], "/" + tokens[0]) if start == 0 else (tokens[start],)
            for label in labels:
                if label in self._literals:
                    ends.setdefault(label, []).append(start + 1)
        for label in sorted(ends):
            yield self._literals[label], ends[label]


def _fits(tokens: Sequence[str], start: int, wildcard: str) -> bool:
    """Say whether ``wildcard`` may match the token at ``start``: the delimiters in front of both are equal.

    Any wildcard may match the address's first token, which has no delimiter.
    """
    return start == 0 or tokens[start][0] == wildcard[0]
