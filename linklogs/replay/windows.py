"""Chooses the width of windows at each level: as requested, unless the table would be too long for anybody to read."""

from __future__ import annotations

from typing import Final

from linklogs.replay.facts import Facts
from linklogs.replay.levels import LEVELS

MOST_ROWS: Final = 2_000_000
WIDER: Final = (1, 2, 6, 12, 60, 360, 8640)
"""Factors of the requested width, each of which divides the next: for 10 s, windows of 10 s, 20 s, 1 min, 2 min, 10
min, an hour and a day.
"""


def widened(facts: Facts, span_us: int, window_us: int) -> dict[str, int]:
    """Return the width of windows at each aggregation level, in us: ``window_us`` or a multiple of it.

    The multiple is the least in WIDER with which the table has at most MOST_ROWS rows, by an estimate; else the
    largest.
    """
    windows = span_us // window_us + 1
    return {level.name: window_us * _times(level.things(facts) * windows) for level in LEVELS}


def _times(rows: int) -> int:
    return next((times for times in WIDER if rows // times <= MOST_ROWS), WIDER[-1])
