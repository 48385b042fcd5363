"""Which hour does a directory stand for, and which directories can hold records of a time?

Times are of UTC, in us since 1970. A file lies in the directory of the hour in which it was begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

HOUR_US = 3_600_000_000
HOUR_FORMAT = "%Y-%m-%dT%H"


@dataclass(frozen=True, slots=True)
class Span:
    """From one time up to, and without, another; None: from the first, to the last."""

    from_us: int | None = None
    to_us: int | None = None

    @property
    def is_all(self) -> bool:
        return self.from_us is None and self.to_us is None

    def may_hold(self, hour_us: int) -> bool:
        """Whether a file that was begun in the hour may have records of this time: it may reach into the next hour."""
        is_late_enough = self.from_us is None or hour_us + 2 * HOUR_US > self.from_us
        return is_late_enough and (self.to_us is None or hour_us < self.to_us)


ALWAYS = Span()


def parse_hour_us(text: str) -> int:
    """Raise ValueError for what is no hour such as `2026-11-24T00`."""
    return int(datetime.strptime(text, HOUR_FORMAT).replace(tzinfo=UTC).timestamp()) * 1_000_000
