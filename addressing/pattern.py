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
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from addressing.address import is_internal, normalize
from addressing.errors import BadValue
from addressing.filter_tree import AmqpTree

MAX_ADDRESS_CHARS = 1024

T = TypeVar("T")

_DELIMITER = re.compile(r"([./])")
FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\x9f\ufffe\uffff]")
"""The expression that finds a character that no address, pattern or filter may have."""
_USER = "${user}"
_LITERAL, _STAR, _END, _HASH = range(4)
"""Ranks of what stands at one place of a pattern, best first; see `_rank`."""


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
    Another look-up finds all patterns that match, in a compiled tree (`addressing.filter_tree`), and takes the best: no
    address, however made, costs more than (tokens of the address) x (tokens of all patterns).
    """

    def __init__(self, entries: Mapping[str, T]) -> None:
        self._exact = {pattern: value for pattern, value in entries.items() if not is_pattern(pattern)}
        patterns = sorted((pattern for pattern in entries if is_pattern(pattern)), key=_rank)
        self._patterns = tuple(patterns)
        self._values = [entries[pattern] for pattern in patterns]
        """Values of the patterns, best pattern first; the tree has the patterns' positions in this list."""
        self._tree: AmqpTree[int] = AmqpTree()
        for position, pattern in enumerate(patterns):
            self._tree.add(pattern, position)

    def extended(self, entries: Mapping[str, T]) -> PatternMap[T]:
        """Return a mapping with ``entries``, none of which is a key here, beside those of this mapping.

        Costs less than a new mapping, which looks for wildcards in each key.
        """
        exact = {pattern: value for pattern, value in entries.items() if not is_pattern(pattern)}
        patterns = {pattern: value for pattern, value in entries.items() if pattern not in exact}
        found: PatternMap[T] = PatternMap(dict(zip(self._patterns, self._values, strict=True)) | patterns)
        found._exact = self._exact | exact
        return found

    @property
    def patterns(self) -> tuple[str, ...]:
        """The keys with wildcards, best first."""
        return self._patterns

    def find(self, address: str) -> T | None:
        """Return the value of the pattern that matches ``address``, in normal form, best; None without a match.

        An address of more than MAX_ADDRESS_CHARS matches no wildcard.
        """
        exact = self._exact.get(address)
        if exact is not None or not self._values or len(address) > MAX_ADDRESS_CHARS:
            return exact
        found = self._tree.matching(address)
        return self._values[min(found)] if found else None


class PatternSet:
    """A set of address patterns: ``address in patterns`` says whether any of the patterns matches the address."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._map = PatternMap(dict.fromkeys(patterns, True))

    def __contains__(self, address: str) -> bool:
        return self._map.find(address) is not None


def is_better(pattern: str, other: str) -> bool:
    """Say whether ``pattern`` is the better match for each address that both patterns match."""
    return _rank(pattern) < _rank(other)


def _rank(pattern: str) -> list[tuple[int, str]]:
    """Return a list by which patterns are sorted, best first, as the module's docstring says which match is best.

    Any address that two patterns match is matched better by the same one of them, so the order needs no address.
    """
    return [*(_token_rank(token) for token in _split(pattern)), (_END, "")]


def _token_rank(token: str) -> tuple[int, str]:
    return {"*": _STAR, "#": _HASH}.get(token.lstrip("./"), _LITERAL), token
