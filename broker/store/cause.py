"""The cause for which a broker moved a message from one queue to another.

The message was rejected, had expired, had been delivered too often, was the oldest in a queue over its limit, or was
moved by an operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """The reason why a broker moved a message from its queue to another queue."""

    REJECTED = "rejected"
    """A consumer rejected the message."""
    DELIVERY_ATTEMPTS = "delivery-attempts"
    """The message reached the queue's limit of delivery attempts."""
    EXPIRED = "expired"
    """The message's deadline had passed."""
    FULL = "full"
    """The earlier queue was over its limit, and the message its oldest."""
    MOVED = "moved"
    """An operator moved the message."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of the move of a message to its present queue from ``origin``, an address or a subscription's filter.

    ``delivery_count`` is the message's count in the earlier queue, ``at_ms`` the Unix time of the move in milliseconds.
    A message with a cause no longer expires.
    """

    reason: Reason
    origin: str
    delivery_count: int
    at_ms: int

    def annotations(self) -> dict[str, str | int]:
        """Return the message annotations that tell consumers the cause of the move; none for a move by an operator."""
        if self.reason is Reason.MOVED:
            return {}
        return {
            "x-opt-dead-letter-reason": self.reason.value,
            "x-opt-dead-letter-origin": self.origin,
            "x-opt-dead-letter-delivery-count": self.delivery_count,
            "x-opt-dead-letter-time": self.at_ms,
        }
