"""The tree of subscription filters, which finds the subscriptions that get a message published to an address.

Each space has a tree of its own, so a filter matches addresses of its space only. A filter is a pattern as
`addressing.pattern` defines it, delimiters included; here all matching filters count, not only the best match.

        news.#  ->  news,  news.sport,  news.sport/football
        news.*  ->  news.sport
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from addressing.address import Address

K = TypeVar("K")

_DELIMITER = re.compile(r"(?=[./])")


def _split(address: str) -> list[str]:
    """Split an address into tokens, each with the delimiter before it: ``a.b/c`` gives ``a``, ``.b``, ``/c``."""
    return _DELIMITER.split(address)


def _bare(token: str) -> str:
    return token.lstrip("./")


@dataclass(slots=True)
class _Branch(Generic[K]):
    keys: dict[K, None] = field(default_factory=dict)
    below: dict[str, _Branch[K]] = field(default_factory=dict)


class SubscriptionTrees(Generic[K]):
    """The trees of subscription filters of all spaces that have filters, one tree for each space.

    Always: no tree is empty
    """

    def __init__(self) -> None:
        self._trees: dict[str, SubscriptionTree[K]] = {}

    def add(self, filter_: Address, key: K) -> None:
        self._trees.setdefault(filter_.space, SubscriptionTree()).add(filter_.name, key)

    def remove(self, filter_: Address, key: K) -> None:
        """Remove the filter that was added with this key; raise KeyError if there is none."""
        tree = self._trees[filter_.space]
        tree.remove(filter_.name, key)
        if not tree:
            del self._trees[filter_.space]

    def matching(self, address: Address) -> list[K]:
        """Return the keys of all filters that match the address, of its space only, each key once."""
        tree = self._trees.get(address.space)
        return [] if tree is None else tree.matching(address.name)


class SubscriptionTree(Generic[K]):
    """Filters in a tree, one token to a level: a look-up costs the length of an address, not the number of filters.

    Always: no branch is empty but the root
    """

    def __init__(self) -> None:
        self._root: _Branch[K] = _Branch()

    def __bool__(self) -> bool:
        return bool(self._root.keys or self._root.below)

    def add(self, filter_: str, key: K) -> None:
        branch = self._root
        for token in _split(filter_):
            branch = branch.below.setdefault(token, _Branch())
        branch.keys[key] = None

    def remove(self, filter_: str, key: K) -> None:
        """Remove the filter that was added with this key; raise KeyError if there is none."""
        tokens = _split(filter_)
        path = [self._root]
        for token in tokens:
            path.append(path[-1].below[token])
        del path[-1].keys[key]
        for parent, token in zip(reversed(path[:-1]), reversed(tokens), strict=True):
            below = parent.below[token]
            if not below.keys and not below.below:
                del parent.below[token]

    def matching(self, address: str) -> list[K]:
        """Return the keys of all filters that match the address, each once, in however many ways its filter matches."""
        found: dict[K, None] = {}
        _match(self._root, _split(address), [0], found)
        return list(found)


def _match(branch: _Branch[K], tokens: list[str], starts: list[int], found: dict[K, None]) -> None:
    """Collect in ``found`` the keys at and below ``branch`` whose filters match.

    ``starts``, at least one and in order, are the positions in ``tokens`` up to which the filter has matched so far.
    All positions go on at once: tried one by one, `#.#.#` in a filter would cost all ways to share the tokens out.
    """
    if starts[-1] == len(tokens):
        found.update(branch.keys)
    for label, below in _worth_a_look(branch, tokens, starts):
        ends = list(_ends(label, tokens, starts))
        if ends:
            _match(below, tokens, ends, found)


def _worth_a_look(branch: _Branch[K], tokens: list[str], starts: list[int]) -> Iterator[tuple[str, _Branch[K]]]:
    labels = {delimiter + wildcard: None for wildcard in ("#", "*") for delimiter in ("", ".", "/")}
    for start in starts:
        if start < len(tokens):
            labels.update(dict.fromkeys(_literals(tokens, start)))
    for label in labels:
        below = branch.below.get(label)
        if below is not None:
            yield label, below


def _ends(label: str, tokens: list[str], starts: list[int]) -> Iterable[int]:
    still_open = [start for start in starts if start < len(tokens)]
    match _bare(label):
        case "#":
            first = next((start for start in still_open if _has_delimiter(tokens, start, label)), len(tokens))
            return sorted({*starts, *range(first + 1, len(tokens) + 1)})
        case "*":
            return [start + 1 for start in still_open if _has_delimiter(tokens, start, label)]
        case _:
            return [start + 1 for start in still_open if label in _literals(tokens, start)]


def _literals(tokens: list[str], start: int) -> tuple[str, ...]:
    # The first token of an address has no delimiter. A filter token after a leading '#', which may stand for no token,
    # has one: this delimiter is ignored where the token is compared with the first token.
    return (tokens[0], "." + tokens[0], "/" + tokens[0]) if start == 0 else (tokens[start],)


def _has_delimiter(tokens: list[str], start: int, label: str) -> bool:
    return start == 0 or tokens[start][0] == label[0]
