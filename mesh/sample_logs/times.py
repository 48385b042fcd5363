"""The beginning and the end of generated link logs, in us since 1970."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    begins_us: int
    ends_us: int

    def at_us(self, offset_s: float) -> int:
        """Return the time ``offset_s`` seconds after the beginning, in us since 1970."""
        return self.begins_us + int(offset_s * 1e6)
