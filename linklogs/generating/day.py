"""The share of a day's traffic between two times."""

from __future__ import annotations

import numpy

from linklogs.generating.plan import Array, DailyCycle

DAY_US = 86_400_000_000
_TURN = 2 * numpy.pi / DAY_US


def seconds(day: DailyCycle, from_us: Array, to_us: Array) -> Array:
    """Seconds of average traffic: seconds of a rush hour count for more, and 24 hours are 86,400 of them."""
    return (_until(day, to_us) - _until(day, from_us)) / 1e6


def _until(day: DailyCycle, at_us: Array) -> Array:
    # Whole days apart: sines of microseconds since 1970 would have lost their digits.
    phase = (at_us - day.peak_us) % DAY_US
    return at_us + day.depth / _TURN * numpy.sin(_TURN * phase)
