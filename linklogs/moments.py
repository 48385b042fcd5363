"""Spans of time, and the hours whose directories may hold records of a span.

Times are UTC, in us since 1970. A file of a link log lies in the directory of the hour of the file's first record.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

HOUR_US = 3_600_000_000
HOUR_FORMAT = "%Y-%m-%dT%H"


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """The time from ``from_us`` on and before ``to_us``; None in place of either: no limit on that side."""

    from_us: int | None = None
    to_us: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether the span has no limit on either side."""
        return self.from_us is None and self.to_us is None

    @property
    def length_us(self) -> int:
        """The length of the span in us; 0 if a limit is missing, or if the span ends before it begins."""
        return 0 if self.from_us is None or self.to_us is None else max(0, self.to_us - self.from_us)

    def widened(self, by_us: int) -> TimeSpan:
        """Return the span with each limit moved outwards by ``by_us``."""
        from_us = None if self.from_us is None else self.from_us - by_us
        return TimeSpan(from_us, None if self.to_us is None else self.to_us + by_us)

    def within(self, other: TimeSpan) -> TimeSpan:
        """Return the span of the times that are in this span and in the other one."""
        begins = [each for each in (self.from_us, other.from_us) if each is not None]
        ends = [each for each in (self.to_us, other.to_us) if each is not None]
        return TimeSpan(max(begins, default=None), min(ends, default=None))

    def may_hold(self, hour_us: int) -> bool:
        """Whether a file in the directory of the hour that began at ``hour_us`` may have records of this span.

        A file may have records of the following hour, too.
        """
        is_late_enough = self.from_us is None or hour_us + 2 * HOUR_US > self.from_us
        return is_late_enough and (self.to_us is None or hour_us < self.to_us)


ALWAYS = TimeSpan()


def parse_hour_us(text: str) -> int:
    """Return when an hour such as `2026-11-24T00` began, in us since 1970. Raise ValueError for other text."""
    return int(datetime.strptime(text, HOUR_FORMAT).replace(tzinfo=UTC).timestamp()) * 1_000_000
