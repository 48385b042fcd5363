"""The cause of a message that the broker, not a producer, put into a queue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    REJECTED = "rejected"
    """A consumer rejected the message."""
    DELIVERY_ATTEMPTS = "delivery-attempts"
    """The message reached the queue's limit of delivery attempts."""
    EXPIRED = "expired"
    FULL = "full"
    """The queue had no room for the message."""
    MOVED = "moved"
    """An operator moved the message."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a message was moved here: ``origin`` is the address of the earlier queue, or the filter of the subscription.

    ``delivery_count`` is the count in the earlier queue, ``at_ms`` the Unix time of the move. The message has no
    deadline any more.
    """

    reason: Reason
    origin: str
    delivery_count: int
    at_ms: int

    def annotations(self) -> dict[str, str | int]:
        """Annotations for consumers; none for an operator's move."""
        if self.reason is Reason.MOVED:
            return {}
        return {
            "x-opt-dead-letter-reason": self.reason.value,
            "x-opt-dead-letter-origin": self.origin,
            "x-opt-dead-letter-delivery-count": self.delivery_count,
            "x-opt-dead-letter-time": self.at_ms,
        }
