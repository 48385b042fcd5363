"""Why does a message lie in a queue that nobody sent it to?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    REJECTED = "rejected"
    """By a consumer."""
    DELIVERY_ATTEMPTS = "delivery-attempts"
    """So many consumers failed as its queue allows."""
    EXPIRED = "expired"
    FULL = "full"
    """Its queue had no room for it."""
    MOVED = "moved"
    """By an operator."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What brought a message here: ``origin`` is the address it was taken from, or the filter of a subscription.

    ``delivery_count`` is what it had there, ``at_ms`` the Unix time it left. It has no deadline any more.
    """

    reason: Reason
    origin: str
    delivery_count: int
    at_ms: int

    def annotations(self) -> dict[str, str | int]:
        """What consumers are told; nothing of what an operator did."""
        if self.reason is Reason.MOVED:
            return {}
        return {
            "x-opt-dead-letter-reason": self.reason.value,
            "x-opt-dead-letter-origin": self.origin,
            "x-opt-dead-letter-delivery-count": self.delivery_count,
            "x-opt-dead-letter-time": self.at_ms,
        }
