"""The beginning and end of the logs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    begins_us: int
    ends_us: int

    def at_us(self, offset_s: float) -> int:
        """The time ``offset_s`` after the beginning."""
        return self.begins_us + int(offset_s * 1e6)
