"""The addresses to settle again, highest priority first and, within a priority, in order of change."""

from __future__ import annotations

from collections import OrderedDict

from router.distribution.entries import AddressEntry


class ChangedAddresses:
    """Each entry stands here once. Every step costs the same: after a change of paths all addresses may be here."""

    def __init__(self) -> None:
        # Not a dict: popping the first item of a dict again and again skips over all items popped before.
        self._by_priority: dict[int, OrderedDict[tuple[str, int], AddressEntry]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_priority)

    def add(self, entry: AddressEntry) -> None:
        self._by_priority.setdefault(entry.policy.priority, OrderedDict())[_key(entry)] = entry

    def discard(self, entry: AddressEntry) -> None:
        level = self._by_priority.get(entry.policy.priority)
        if level is not None and level.pop(_key(entry), None) is not None and not level:
            del self._by_priority[entry.policy.priority]

    def pop(self) -> AddressEntry:
        """Return the next entry. Raises ValueError when no entry is left."""
        priority = max(self._by_priority)
        level = self._by_priority[priority]
        _, entry = level.popitem(last=False)
        if not level:
            del self._by_priority[priority]
        return entry


def _key(entry: AddressEntry) -> tuple[str, int]:
    return entry.group.address, entry.group.phase
