"""How many connections does a user have at this router, and may it have another one?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from wire.errors import AmqpError


class Crowding:
    """``most_of`` says how many a user may have, 0 for any number; None is who did not say who it is.

    Always: ``_counts`` has those that were let in and did not leave
    """

    def __init__(self, most_of: Callable[[str | None], int]) -> None:
        self._most_of = most_of
        self._counts: Counter[str | None] = Counter()

    def enter(self, user: str | None) -> None:
        """Raises AmqpError when there are as many as there may be."""
        most = self._most_of(user)
        if most and self._counts[user] >= most:
            who = f"user {user!r}" if user else "clients that do not say who they are"
            reason = f"{who}: {most} connections to this router at most"
            raise AmqpError("amqp:resource-limit-exceeded", reason)
        self._counts[user] += 1

    def leave(self, user: str | None) -> None:
        self._counts[user] -= 1
        if not self._counts[user]:
            del self._counts[user]
