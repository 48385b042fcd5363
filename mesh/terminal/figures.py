"""Computes figures from many measurements: the median, percentiles for the slow tail, and rounding."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

SHARES = {"p50_us": 0.50, "p95_us": 0.95, "p99_us": 0.99}


def percentiles(samples_us: Sequence[float]) -> dict[str, float]:
    """Return the samples' percentiles named in ``SHARES``, by nearest rank, and their maximum; {} without samples."""
    if not samples_us:
        return {}
    ordered = sorted(samples_us)
    found = {name: ordered[rank(share, len(ordered))] for name, share in SHARES.items()}
    return {**found, "max_us": ordered[-1]}


def rank(share: float, count: int) -> int:
    """Return the smallest index into ``count`` sorted values with at least ``share`` of the values at or below it."""
    return max(0, min(count - 1, -int(-share * count // 1) - 1))


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def rounded(value: float) -> float:
    """Round to four significant digits; values from 1,000 on are rounded to whole numbers."""
    return float(f"{value:.4g}") if abs(value) < 1000 else round(value)
