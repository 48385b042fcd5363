"""The cause for which the broker itself put a message into a queue.

The message was rejected, expired, delivered too often, found a full queue, or was moved by an operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why the broker moved a message from its queue to another queue."""

    REJECTED = "rejected"
    """A consumer rejected the message."""
    DELIVERY_ATTEMPTS = "delivery-attempts"
    """The message reached the queue's limit of delivery attempts."""
    EXPIRED = "expired"
    """The message's deadline had passed."""
    FULL = "full"
    """The earlier queue had no room for the message."""
    MOVED = "moved"
    """An operator moved the message."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a message was moved to its queue; ``origin`` is the earlier queue's address, or the subscription's filter.

    ``delivery_count`` is the count in the earlier queue, ``at_ms`` the Unix time of the move. The message no
    longer expires.
    """

    reason: Reason
    origin: str
    delivery_count: int
    at_ms: int

    def annotations(self) -> dict[str, str | int]:
        """Return the message annotations that tell consumers the cause; none for a move by an operator."""
        if self.reason is Reason.MOVED:
            return {}
        return {
            "x-opt-dead-letter-reason": self.reason.value,
            "x-opt-dead-letter-origin": self.origin,
            "x-opt-dead-letter-delivery-count": self.delivery_count,
            "x-opt-dead-letter-time": self.at_ms,
        }
