"""What can go wrong between a load generator and the peer that it loads?"""

from __future__ import annotations

from mesh.failure import CommandFailed, Unreachable


class Malformed(Unreachable):
    """The peer's bytes are not AMQP 1.0 as this generator reads it."""


class PeerGone(Unreachable):
    """The connection broke, or the peer closed it."""


class Refused(CommandFailed):
    """The peer detached a link or ended a session; ``condition`` says why, as AMQP does."""

    def __init__(self, what: str, condition: str, description: str | None) -> None:
        super().__init__(f"{what}: {description or condition}", code=condition)
        self.condition = condition
