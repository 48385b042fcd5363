"""Counts of deliveries: by outcome, with sizes, delays, latencies, the last time, and a rate."""

from __future__ import annotations

from typing import Final

from recording.columns import RecordOutcome
from recording.ring_format import OUTCOMES

_FIELD_OF: Final = {
    RecordOutcome.ACCEPTED: "accepted",
    RecordOutcome.REJECTED: "rejected",
    RecordOutcome.RELEASED: "released",
    RecordOutcome.MODIFIED: "modified",
    RecordOutcome.NONE: "settled",
    RecordOutcome.ABORTED: "aborted",
    RecordOutcome.SENDER_LOST: "aborted",
}
OUTCOME_FIELDS: Final = {code: _FIELD_OF[outcome] for code, outcome in OUTCOMES.items()}
"""By the code of an outcome in a slot, the field of `DeliveryCounts` that counts the outcome."""
COUNT_FIELDS: Final = (
    "deliveries", "accepted", "rejected", "released", "modified", "settled", "aborted",
    "delayed_1s", "delayed_10s", "bytes", "rate", "last_at",
)  # fmt: skip
DELAYED_US: Final = 1_000_000
DELAYED_LONG_US: Final = 10_000_000
LATENCY_BUCKETS: Final = 36
"""Bucket ``n`` of a latency histogram counts latencies from 2^(n-1) us to below 2^n us; bucket 0 counts 0 us."""


class DeliveryCounts:
    """Counts of deliveries since the observer began; they never fall."""

    __slots__ = (
        "_seen",
        "aborted",
        "accepted",
        "bytes",
        "delayed_1s",
        "delayed_10s",
        "deliveries",
        "last_us",
        "modified",
        "rate",
        "rejected",
        "released",
        "settled",
    )  # fmt: skip

    def __init__(self) -> None:
        self.deliveries = self.accepted = self.rejected = self.released = self.modified = 0
        self.settled = self.aborted = self.delayed_1s = self.delayed_10s = self.bytes = 0
        self.last_us: int | None = None
        """End of the last delivery, in us of UTC."""
        self.rate = 0.0
        self._seen = 0

    def add(self, field: str, sums: DeliverySums) -> None:
        """Add ``sums`` of deliveries whose outcome is counted by ``field``, one of OUTCOME_FIELDS."""
        count = sums.count
        self.deliveries += count
        setattr(self, field, getattr(self, field) + count)
        self.bytes += sums.size_bytes
        if sums.delayed:
            self.delayed_1s += sums.delayed
            self.delayed_10s += sums.delayed_long
        if self.last_us is None or sums.last_us > self.last_us:
            self.last_us = sums.last_us

    def on_time(self, seconds: float) -> bool:
        """Compute the rate over the last ``seconds``; return whether there was any delivery in that time."""
        count, self._seen = self.deliveries - self._seen, self.deliveries
        self.rate = count / seconds
        return count > 0

    def skip(self) -> None:
        """Leave all deliveries so far out of the rate: nobody knows in which time they came."""
        self._seen = self.deliveries

    @property
    def last_at(self) -> float | None:
        """End of the last delivery, in seconds of UTC."""
        return None if self.last_us is None else self.last_us / 1e6


class DeliverySums:
    """Sums over the equal deliveries in a part of a ring: those of equal links, outcome and part."""

    __slots__ = ("count", "delayed", "delayed_long", "last_us", "latencies", "size_bytes")

    def __init__(self) -> None:
        self.count = self.size_bytes = self.delayed = self.delayed_long = 0
        self.last_us = 0
        """End of the last delivery, first in us of the monotonic clock, in us of UTC once `read_slots` has ended."""
        self.latencies: dict[int, int] = {}
        """Deliveries by the bucket of their latency: the number of bits of the latency in us."""


class LatencyCounts:
    """A histogram of latencies: ``counts`` of LATENCY_BUCKETS buckets, and the sum of all latencies in us, estimated.

    The sum takes the middle of its bucket for each latency.
    """

    __slots__ = ("counts", "sum_us")

    def __init__(self) -> None:
        self.counts = [0] * LATENCY_BUCKETS
        self.sum_us = 0

    def add(self, latencies: dict[int, int]) -> None:
        for bucket, count in latencies.items():
            self.counts[min(bucket, LATENCY_BUCKETS - 1)] += count
            self.sum_us += count * (3 << bucket >> 2)
