"""Settings under ``metrics`` of a topology file."""

from __future__ import annotations

from typing import Any

from addressing.topology.part import AddressPatterns, TopologyPart


class Metrics(TopologyPart):
    """Settings of the numbers that the observer keeps and tells. A list of patterns is short for detail."""

    detail: AddressPatterns = ()
    """Addresses whose counters stay when nobody uses the address any more: at most 10,000, then the oldest goes."""
    off: AddressPatterns = ()
    """Declared addresses and patterns that have no series in `/metrics`: those that a pattern here covers."""

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        return {"detail": value} if isinstance(value, (str, list)) else super()._from_shorthand(value)
