"""Policies of queues: limits, dead letters, expiry, and limits of queues that clients make under a pattern."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from addressing.address import Address
from addressing.records import Level

DEFAULT_DELIVERY_ATTEMPTS = 10
DEFAULT_MAX_QUEUES = 100_000
DEFAULT_MAX_QUEUES_PER_USER = 20_000
DEFAULT_QUEUE_EXPIRY_S = 86_400.0


class WhenFull(StrEnum):
    """Treatment by a broker of a message beyond the limits of a queue or subscription (`max_messages`, `max_bytes`)."""

    BLOCK = "block"
    REJECT = "reject"
    DROP_OLDEST = "drop-oldest"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Policy of a queue at a broker, or of each subscription of a topic: dead letters, expiry, limits.

    ``dead_letter`` and ``expiry`` are queues at the same broker, by their names there. None stands for no queue, 0 for
    no limit.

    Always: without a ``dead_letter``, ``max_delivery_attempts`` is 0 and ``when_full`` is not DEAD_LETTER.
    """

    dead_letter: Address | None = None
    max_delivery_attempts: int = 0
    expiry: Address | None = None
    max_messages: int = 0
    max_bytes: int = 0
    when_full: WhenFull = WhenFull.BLOCK
    link_log: Level | None = None
    """How much of the queue's messages its broker records in link logs; None: the default level of the mesh."""

    @property
    def is_limited(self) -> bool:
        return bool(self.max_messages or self.max_bytes)

    @property
    def blocks(self) -> bool:
        """Whether the queue holds its producers back while it is full."""
        return self.is_limited and self.when_full is WhenFull.BLOCK


@dataclass(frozen=True, slots=True)
class PatternPolicy:
    """Limits on the queues that clients make under ``pattern`` at one broker by using them: number and lifetime.

    ``max_queues_per_user`` counts the queues that one user made, as the first to use each. The broker deletes a queue
    that is empty and without links for ``expiry_s``.
    """

    pattern: str
    """The pattern as the text of an address, so that equal patterns of two spaces have limits of their own."""
    max_queues: int
    max_queues_per_user: int
    expiry_s: float


NO_POLICY = QueuePolicy()
