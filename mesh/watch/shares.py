"""Shares of what the observer does at the same time: nobody takes all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from starlette.exceptions import HTTPException

from mesh.watch.access import LoginKind, Requester


class Shares:
    """Limits how many things are under way: ``most`` of all requesters, ``most_of_one`` of each of them.

    ``things``: what is counted, in the plural. Memory is bounded by ``most``.
    """

    def __init__(self, things: str, most: int, most_of_one: int) -> None:
        self._things, self._most, self._most_of_one = things, most, most_of_one
        self._taken: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        """Return how many are under way."""
        return self._taken.total()

    def check(self, requester: Requester) -> None:
        """Raise HTTPException if ``requester`` cannot have another one: 429 if the others' share is left, else 503."""
        if self._taken[_key(requester)] >= self._most_of_one:
            raise HTTPException(
                429,
                f"{self._most_of_one} {self._things} of yours are under way, which is the most for one requester: "
                "try again when one of them has ended",
                {"retry-after": "1"},
            )
        if len(self) >= self._most:
            raise HTTPException(
                503,
                f"{self._most} {self._things} are under way, which is the most: try again later",
                {"retry-after": "1"},
            )

    @contextmanager
    def taken(self, requester: Requester) -> Iterator[None]:
        """Count one of ``requester`` as long as the context lasts. Raises HTTPException as `check` does."""
        self.check(requester)
        key = _key(requester)
        self._taken[key] += 1
        try:
            yield
        finally:
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]


def _key(requester: Requester) -> Hashable:
    """Return the same value for all requests of a user, of the owner, or, without a login, from one source."""
    if requester.login is LoginKind.NONE:
        return LoginKind.NONE, requester.source
    return "" if requester.operator.is_owner else requester.operator.name
