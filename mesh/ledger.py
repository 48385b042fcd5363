"""What became of every message of one flow: numbers sent, outcomes told, arrivals seen. Sans-IO; times in seconds.

Always: attempted = accepted + released + rejected + modified + unknown, once the flow is over.
        lost = accepted, but missing at a consumer that should have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

UNKNOWN = "unknown"


class Ledger:
    def __init__(self, consumers: Sequence[str]) -> None:
        """``consumers`` should each get every message."""
        self.attempted = 0
        self.outcomes: Counter[str] = Counter()
        self.accepted: set[int] = set()
        self.arrivals: dict[str, Counter[int]] = {name: Counter() for name in consumers}
        self._arrival_times: dict[str, list[float]] = {name: [] for name in consumers}

    def on_attempt(self) -> int:
        """The number of the next message."""
        self.attempted += 1
        return self.attempted

    def on_outcome(self, number: int, outcome: str) -> None:
        self.outcomes[outcome] += 1
        if outcome == "accepted":
            self.accepted.add(number)

    def on_arrival(self, consumer: str, number: int, now: float) -> None:
        self.arrivals[consumer][number] += 1
        self._arrival_times[consumer].append(now)

    @property
    def is_settled(self) -> bool:
        """Every message has its outcome."""
        return self.attempted == self.outcomes.total()

    def received(self) -> int:
        return sum(arrived.total() for arrived in self.arrivals.values())

    def received_between(self, start: float, end: float) -> int:
        return sum(start <= at < end for times in self._arrival_times.values() for at in times)

    def lost(self) -> int:
        return sum(len(self.accepted - arrived.keys()) for arrived in self.arrivals.values())

    def twice(self) -> int:
        """Arrivals beyond the first of a message."""
        return sum(count - 1 for arrived in self.arrivals.values() for count in arrived.values())

    def outage_s(self, start: float, end: float) -> float:
        """The longest time within these bounds in which some consumer got nothing."""
        return max(longest_gap_s(times, start, end) for times in self._arrival_times.values())


def longest_gap_s(times: Sequence[float], start: float, end: float) -> float:
    within = [start, *(at for at in times if start <= at <= end), end]
    return max(later - earlier for earlier, later in pairwise(within))
