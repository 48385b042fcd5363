"""What were the clients of a broker told? Beside it, what it has must make sense.

lost              accepted, never settled by a consumer, and not there at the end
resurrected       seen again after its settlement was confirmed
unmarked          seen again with a delivery-count of 0, though nobody released it
"""

from dataclasses import dataclass, field


@dataclass
class Ledger:
    """Of one queue or subscription; messages by their number."""

    accepted: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    settled: set[int] = field(default_factory=set)
    """Accepted or rejected by the consumer; the broker may not have heard of it."""
    confirmed: set[int] = field(default_factory=set)
    released: set[int] = field(default_factory=set)
    resurrected: set[int] = field(default_factory=set)
    unmarked: set[int] = field(default_factory=set)
    seen_at_end: set[int] = field(default_factory=set)
    returned_count: int = 0

    def on_seen(self, number: int, delivery_count: int) -> None:
        if number in self.confirmed:
            self.resurrected.add(number)
        if number in self.seen:
            self.returned_count += 1
            if delivery_count == 0 and number not in self.released:
                self.unmarked.add(number)
        self.seen.add(number)
        self.released.discard(number)

    @property
    def lost(self) -> set[int]:
        """Once the broker has been emptied."""
        return self.accepted - self.settled - self.seen_at_end

    def check(self) -> None:
        """Once the broker has been emptied."""
        assert self.lost == set(), "accepted and lost"
        assert self.resurrected == set(), "confirmed and seen again"
        assert self.unmarked == set(), "came again without a delivery-count"

    def __str__(self) -> str:
        return (
            f"accepted {len(self.accepted)}, settled {len(self.settled)}, confirmed {len(self.confirmed)}, "
            f"came again {self.returned_count}"
        )
