"""The addresses that nobody uses and whose counters are kept all the same, the one used last at the end. Sans-IO."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MAX_IDLE: Final = 10_000
"""The most addresses that are kept: for another one, the address that was left first is forgotten."""


class IdleAddresses:
    """``is_detailed`` tells whether the topology wants the counters of an address kept (`metrics.detail`)."""

    def __init__(self, is_detailed: Callable[[str], bool]) -> None:
        self.forgotten = 0
        """Addresses whose counters are gone, for want of room."""
        self._is_detailed = is_detailed
        self._idle: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._idle)

    def keep(self, address: str) -> str | None:
        """Keep an address that was just left; return the address to forget instead, perhaps this one, or None."""
        if not self._is_detailed(address):
            return address
        self._idle[address] = None
        if len(self._idle) <= MAX_IDLE:
            return None
        first = next(iter(self._idle))
        del self._idle[first]
        self.forgotten += 1
        return first

    def use(self, address: str) -> bool:
        """Take out an address that is used again; tell whether it was kept."""
        if address not in self._idle:
            return False
        del self._idle[address]
        return True
