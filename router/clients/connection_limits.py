"""Limit the number of client connections that each user has at this router."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from wire.errors import AmqpError


class ConnectionLimits:
    """Counts the client connections of each user, and refuses a connection beyond the user's limit.

    ``most_of`` returns the limit of a user, 0 for no limit; user None stands for all clients without a user name.
    Always: ``_counts`` counts the connections that entered and have not left.
    """

    def __init__(self, most_of: Callable[[str | None], int]) -> None:
        self._most_of = most_of
        self._counts: Counter[str | None] = Counter()

    def enter(self, user: str | None) -> None:
        """Count a new connection of ``user``. Raises AmqpError if ``user`` already has as many as allowed."""
        most = self._most_of(user)
        if most and self._counts[user] >= most:
            who = f"user {user!r}" if user else "anonymous clients"
            reason = f"{who}: at most {most} connections to this router are allowed"
            raise AmqpError("amqp:resource-limit-exceeded", reason)
        self._counts[user] += 1

    def leave(self, user: str | None) -> None:
        self._counts[user] -= 1
        if not self._counts[user]:
            del self._counts[user]
