"""The hour of a directory, and the directories that may hold records of a time.

Times are UTC, in us since 1970. A file lies in the directory of the hour in which it was begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

HOUR_US = 3_600_000_000
HOUR_FORMAT = "%Y-%m-%dT%H"


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """From one time up to, and without, another; None: from the first, to the last."""

    from_us: int | None = None
    to_us: int | None = None

    @property
    def is_all(self) -> bool:
        return self.from_us is None and self.to_us is None

    @property
    def length_us(self) -> int:
        """The length of a span with both ends, or else 0; also 0 if the span ends before it begins."""
        return 0 if self.from_us is None or self.to_us is None else max(0, self.to_us - self.from_us)

    def widened(self, by_us: int) -> TimeSpan:
        from_us = None if self.from_us is None else self.from_us - by_us
        return TimeSpan(from_us, None if self.to_us is None else self.to_us + by_us)

    def within(self, other: TimeSpan) -> TimeSpan:
        """The part in both spans."""
        begins = [each for each in (self.from_us, other.from_us) if each is not None]
        ends = [each for each in (self.to_us, other.to_us) if each is not None]
        return TimeSpan(max(begins, default=None), min(ends, default=None))

    def may_hold(self, hour_us: int) -> bool:
        """Whether a file begun in the hour may have records of this time: a file may reach into the next hour."""
        is_late_enough = self.from_us is None or hour_us + 2 * HOUR_US > self.from_us
        return is_late_enough and (self.to_us is None or hour_us < self.to_us)


ALWAYS = TimeSpan()


def parse_hour_us(text: str) -> int:
    """Raise ValueError for text that is no hour such as `2026-11-24T00`."""
    return int(datetime.strptime(text, HOUR_FORMAT).replace(tzinfo=UTC).timestamp()) * 1_000_000
