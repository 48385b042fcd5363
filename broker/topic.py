"""Which subscriptions want a message published to this address?

Pure. Addresses are tokens separated by `.` or `/`; in a filter `*` stands for one token and `#` for any number of
them, none included.

        news.#  ->  news,  news.sport,  news/sport/football
        news.*  ->  news.sport
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K")

_DELIMITER = re.compile(r"[./]")


def tokens(address: str) -> tuple[str, ...]:
    """A leading delimiter says nothing: `/news` and `news` are one address."""
    return tuple(_DELIMITER.split(address.lstrip("/")))


def has_wildcard(address: str) -> bool:
    return any(token in ("*", "#") for token in tokens(address))


@dataclass(slots=True)
class _Branch(Generic[K]):
    keys: dict[K, None] = field(default_factory=dict)
    below: dict[str, _Branch[K]] = field(default_factory=dict)


class SubscriptionTree(Generic[K]):
    """Filters in a tree, one token to a level: a look-up costs what the address is long, not what is subscribed.

    Always: no branch is empty but the root
    """

    def __init__(self) -> None:
        self._root: _Branch[K] = _Branch()

    def add(self, filter_: str, key: K) -> None:
        branch = self._root
        for token in tokens(filter_):
            branch = branch.below.setdefault(token, _Branch())
        branch.keys[key] = None

    def remove(self, filter_: str, key: K) -> None:
        """Raise KeyError if this key does not hold this filter."""
        path = [self._root]
        for token in tokens(filter_):
            path.append(path[-1].below[token])
        del path[-1].keys[key]
        for parent, token in zip(reversed(path[:-1]), reversed(tokens(filter_)), strict=True):
            below = parent.below[token]
            if not below.keys and not below.below:
                del parent.below[token]

    def matching(self, address: str) -> list[K]:
        """Each key once, however many ways its filter matches."""
        found: dict[K, None] = {}
        self._match(self._root, tokens(address), 0, found)
        return list(found)

    def _match(self, branch: _Branch[K], address: tuple[str, ...], depth: int, found: dict[K, None]) -> None:
        rest = branch.below.get("#")
        if rest is not None:
            for skipped_to in range(depth, len(address) + 1):
                self._match(rest, address, skipped_to, found)
        if depth == len(address):
            found.update(branch.keys)
            return
        for token in dict.fromkeys((address[depth], "*")):
            below = branch.below.get(token)
            if below is not None:
                self._match(below, address, depth + 1, found)
