"""The addresses whose circuits, branches and links are to be settled again, since something about them changed."""

from __future__ import annotations

from collections import OrderedDict

from router.distribution.entries import AddressEntry


class ChangedAddresses:
    """A queue of address entries to settle again: highest priority first, within a priority in order of change.

    Each entry stands in the queue once. Each method takes constant time, since after a change of paths all addresses of
    the router may be in the queue.
    """

    def __init__(self) -> None:
        # OrderedDict and not dict: to find its first item, a dict skips over the places of all items popped before.
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
        """Remove and return the next entry: of the highest priority, the first that changed.

        Raises ValueError when no entry is left.
        """
        priority = max(self._by_priority)
        level = self._by_priority[priority]
        _, entry = level.popitem(last=False)
        if not level:
            del self._by_priority[priority]
        return entry


def _key(entry: AddressEntry) -> tuple[str, int]:
    return entry.group.address, entry.group.phase
