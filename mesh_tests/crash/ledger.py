"""What were the clients of a broker told? Beside it, what it has must make sense.

lost              accepted, never settled by a consumer, and not there at the end
resurrected       seen again after its settlement was confirmed
unmarked          seen again with a delivery-count of 0, though nobody released it
outlived          seen when its time had been over before the broker was started
moved twice       more than once among the dead letters and those that expired, or there and in its queue
not moved         its rejection was confirmed, and it is no dead letter
"""

import math
from collections import Counter
from dataclasses import dataclass, field

GRACE_S = 2.0
"""A message may lie in sockets before the broker counts its time."""


@dataclass
class Ledger:
    """Of one queue or subscription; messages by their number."""

    accepted: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    has_ways_out: bool = False
    """What is rejected or expires goes to other queues, and is not gone."""
    dead: Counter[int] = field(default_factory=Counter)
    late: Counter[int] = field(default_factory=Counter)
    rejected: set[int] = field(default_factory=set)
    settled: set[int] = field(default_factory=set)
    """Accepted or rejected by the consumer; the broker may not have heard of it."""
    confirmed: set[int] = field(default_factory=set)
    released: set[int] = field(default_factory=set)
    resurrected: set[int] = field(default_factory=set)
    unmarked: set[int] = field(default_factory=set)
    outlived: set[int] = field(default_factory=set)
    seen_at_end: set[int] = field(default_factory=set)
    dies_at: dict[int, float] = field(default_factory=dict)
    """Unix time after which it may be gone; of all that have a ttl."""
    returned_count: int = 0

    def on_seen(self, number: int, delivery_count: int, began_at: float = 0.0) -> None:
        """``began_at``: Unix time at which this run of the broker began."""
        if self.dies_at.get(number, math.inf) < began_at - GRACE_S:
            self.outlived.add(number)
        if number in self.confirmed:
            self.resurrected.add(number)
        if number in self.seen:
            self.returned_count += 1
            if delivery_count == 0 and number not in self.released:
                self.unmarked.add(number)
        self.seen.add(number)
        self.released.discard(number)

    def lost(self, now: float = 0.0) -> set[int]:
        """Once the broker has been emptied, at that Unix time."""
        expired = {number for number, dies_at in self.dies_at.items() if dies_at < now}
        moved = self.dead.keys() | self.late.keys()
        return self.accepted - self.settled - self.seen_at_end - (moved if self.has_ways_out else expired)

    def moved_twice(self) -> set[int]:
        moved = self.dead + self.late
        return {number for number, times in moved.items() if times > 1} | (moved.keys() & self.seen_at_end)

    def not_moved(self) -> set[int]:
        return (self.rejected & self.confirmed) - self.dead.keys() if self.has_ways_out else set()

    def moved_after_accept(self) -> set[int]:
        return (self.confirmed - self.rejected) & (self.dead + self.late).keys()

    def check(self, now: float) -> None:
        """Once the broker has been emptied, at that Unix time."""
        assert self.lost(now) == set(), "accepted and lost"
        assert self.resurrected == set(), "confirmed and seen again"
        assert self.moved_twice() == set(), "moved, and there twice"
        assert self.not_moved() == set(), "rejected, and no dead letter"
        assert self.moved_after_accept() == set(), "accepted, confirmed, and moved"
        assert self.unmarked == set(), "came again without a delivery-count"
        assert self.outlived == set(), "came when its time was over"

    @property
    def counts(self) -> dict[str, int]:
        return {
            "accepted": len(self.accepted),
            "settled": len(self.settled),
            "confirmed": len(self.confirmed),
            "came again": self.returned_count,
            "expired": len(self.accepted & self.dies_at.keys() - self.seen),
            **({"dead": len(self.dead), "late": len(self.late)} if self.has_ways_out else {}),
        }
