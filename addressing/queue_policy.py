"""Policies of queues: limits, dead letters, expiry, and limits of queues that clients make under a pattern."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from addressing.records import Level

DEFAULT_DELIVERY_ATTEMPTS = 10
DEFAULT_MAX_QUEUES = 100_000
DEFAULT_MAX_QUEUES_PER_USER = 20_000
DEFAULT_QUEUE_EXPIRY_S = 86_400.0


class WhenFull(StrEnum):
    """Treatment of a message beyond a queue's limits."""

    BLOCK = "block"
    REJECT = "reject"
    DROP_OLDEST = "drop-oldest"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Policy of a queue, or of each subscription of a topic. Addresses are names at the broker; "" and 0: none.

    Always: without a ``dead_letter``, ``max_delivery_attempts`` is 0 and ``when_full`` is not DEAD_LETTER.
    """

    dead_letter: str = ""
    max_delivery_attempts: int = 0
    expiry: str = ""
    max_messages: int = 0
    max_bytes: int = 0
    when_full: WhenFull = WhenFull.BLOCK
    link_log: Level | None = None
    """Record level of the queue; None: the default level of the mesh."""

    @property
    def is_limited(self) -> bool:
        return bool(self.max_messages or self.max_bytes)


@dataclass(frozen=True, slots=True)
class PatternPolicy:
    """Limits on the queues that clients make under ``pattern`` at one broker by using them: number and lifetime.

    ``max_queues_per_user`` counts the queues that a user was the first to use. A queue that is empty and without links
    for ``expiry_s`` is deleted.
    """

    pattern: str
    max_queues: int
    max_queues_per_user: int
    expiry_s: float


NO_POLICY = QueuePolicy()
