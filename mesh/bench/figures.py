"""What do many measurements come to: the middle, the spread, the slow tail?"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

SHARES = {"p50_us": 0.50, "p95_us": 0.95, "p99_us": 0.99}


def percentiles(samples_us: Sequence[float]) -> dict[str, float]:
    """Nearest rank; nothing of nothing."""
    if not samples_us:
        return {}
    ordered = sorted(samples_us)
    found = {name: ordered[rank(share, len(ordered))] for name, share in SHARES.items()}
    return {**found, "max_us": ordered[-1]}


def rank(share: float, count: int) -> int:
    """The smallest index with at least ``share`` of all at or below it."""
    return max(0, min(count - 1, -int(-share * count // 1) - 1))


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def rounded(value: float) -> float:
    """Four digits that mean something, and no others."""
    return float(f"{value:.4g}") if abs(value) < 1000 else round(value)
