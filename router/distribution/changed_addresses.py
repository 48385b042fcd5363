"""The addresses of a router that changed, and whose circuits, branches and links are to be brought up to date."""

from __future__ import annotations

from collections import OrderedDict

from router.distribution.entries import AddressEntry


class ChangedAddresses:
    """A queue of address entries to bring up to date: highest address priority first, then in order of change.

    Each entry stands in the queue once, at the place of its first change. Each method takes constant time, since after
    a change of paths all addresses of the router may be in the queue. Each part of a router that sees a change of an
    address adds the address's entry.
    """

    def __init__(self) -> None:
        # An OrderedDict, and not a dict: to find its first item, a dict skips the places of all items popped before.
        self._by_priority: dict[int, OrderedDict[AddressEntry, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_priority)

    def add(self, entry: AddressEntry) -> None:
        self._by_priority.setdefault(entry.policy.priority, OrderedDict())[entry] = None

    def discard(self, entry: AddressEntry) -> None:
        level = self._by_priority.get(entry.policy.priority)
        if level is not None and level.pop(entry, entry) is None and not level:
            del self._by_priority[entry.policy.priority]

    def pop(self) -> AddressEntry:
        """Remove and return the next entry: of the highest priority, the first that changed.

        Raises ValueError when no entry is left.
        """
        priority = max(self._by_priority)
        level = self._by_priority[priority]
        entry, _ = level.popitem(last=False)
        if not level:
            del self._by_priority[priority]
        return entry
