"""What does the broker know of a message it holds? Never its body: that is the store's or the shelf's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(slots=True, eq=False)
class Message:
    """One message, however many queues and subscriptions it lies in.

    ``is_stored``   its body is in the store
    ``is_large``    its body lies in a file of its own
    ``references``  entries (and those to come) and copies under way that still need the body; at 0 the body may go
    """

    message_id: int
    size_bytes: int
    is_stored: bool
    is_large: bool = False
    expires_at_s: float | None = None
    references: int = 0

    def is_expired(self, now: float) -> bool:
        return self.expires_at_s is not None and self.expires_at_s <= now


class State(Enum):
    """Of a message in a queue. [3.3]"""

    AVAILABLE = "available"
    ACQUIRED = "acquired"
    ARCHIVED = "archived"


@dataclass(slots=True, eq=False)
class Entry:
    """A message's place in one queue.

    ``position`` orders the queue and never changes: what comes back comes back to its place.
    ``shunned_by`` are the consumers that said undeliverable-here. [3.4.5]
    """

    message: Message
    position: int
    delivery_count: int = 0
    state: State = State.AVAILABLE
    shunned_by: frozenset[int] = frozenset()

    @property
    def message_id(self) -> int:
        return self.message.message_id

    @property
    def was_seen(self) -> bool:
        return self.delivery_count > 0
