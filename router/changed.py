"""Which addresses are to be looked at again? Those of the highest priority first, and of these the first to change."""

from __future__ import annotations

from collections import OrderedDict

from router.entries import Entry


class Changed:
    """Each once. Any step costs the same, however many there are: after a change of paths that is all."""

    def __init__(self) -> None:
        # Not a dict: to take out its first again and again means to pass all that were taken out before.
        self._by_priority: dict[int, OrderedDict[tuple[str, int], Entry]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_priority)

    def add(self, entry: Entry) -> None:
        self._by_priority.setdefault(entry.policy.priority, OrderedDict())[_key(entry)] = entry

    def discard(self, entry: Entry) -> None:
        level = self._by_priority.get(entry.policy.priority)
        if level is not None and level.pop(_key(entry), None) is not None and not level:
            del self._by_priority[entry.policy.priority]

    def pop(self) -> Entry:
        """Raises ValueError when there is none."""
        priority = max(self._by_priority)
        level = self._by_priority[priority]
        _, entry = level.popitem(last=False)
        if not level:
            del self._by_priority[priority]
        return entry


def _key(entry: Entry) -> tuple[str, int]:
    return entry.group.address, entry.group.phase
