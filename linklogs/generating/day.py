"""Integrates the daily cycle of traffic: the seconds of average traffic between two times."""

from __future__ import annotations

import numpy

from linklogs.generating.plan import Array, DailyCycle

DAY_US = 86_400_000_000
_TURN = 2 * numpy.pi / DAY_US


def seconds(day: DailyCycle, from_us: Array, to_us: Array) -> Array:
    """Return the traffic between two times, in seconds of average traffic.

    A second of a rush hour counts for more than one; 24 hours make 86,400 in every case.
    """
    return (_until(day, to_us) - _until(day, from_us)) / 1e6


def _until(day: DailyCycle, at_us: Array) -> Array:
    # The phase is taken modulo one day, because the sine of microseconds since 1970 would lack precision.
    phase = (at_us - day.peak_us) % DAY_US
    return at_us + day.depth / _TURN * numpy.sin(_TURN * phase)
