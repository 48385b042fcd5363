"""What becomes of messages that nobody accepts, or that a queue has no room for?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from addressing.link_log import Level

DEFAULT_DELIVERY_ATTEMPTS = 10
DEFAULT_MAX_QUEUES = 100_000
DEFAULT_MAX_QUEUES_PER_USER = 20_000
DEFAULT_QUEUE_EXPIRY_S = 86_400.0


class WhenFull(StrEnum):
    """What a queue does with a message beyond its limits."""

    BLOCK = "block"
    REJECT = "reject"
    DROP_OLDEST = "drop-oldest"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Of one queue, or of each subscription of a topic. Addresses are those at the broker; "" for none, 0 for no limit.

    Always: ``max_delivery_attempts`` is 0 unless there is a ``dead_letter``; so is ``when_full`` not DEAD_LETTER
    """

    dead_letter: str = ""
    max_delivery_attempts: int = 0
    expiry: str = ""
    max_messages: int = 0
    max_bytes: int = 0
    when_full: WhenFull = WhenFull.BLOCK
    link_log: Level | None = None
    """How much is recorded of it; None: as of all that say nothing."""

    @property
    def is_limited(self) -> bool:
        return bool(self.max_messages or self.max_bytes)


@dataclass(frozen=True, slots=True)
class PatternPolicy:
    """Of the queues that clients make under ``pattern`` at one broker, by using them: how many, and for how long.

    ``max_queues_per_user`` counts those that one user made first. One that is empty and without links for ``expiry_s``
    is deleted.
    """

    pattern: str
    max_queues: int
    max_queues_per_user: int
    expiry_s: float


NO_POLICY = QueuePolicy()
