"""The filter set of one subscription, and changes of the set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from addressing.filter_kinds import FilterKind

MAX_FILTERS = 100_000
"""Most filters that a set may have."""


@dataclass(frozen=True, slots=True)
class FilterChange:
    """A change of a filter set; ``serial`` is 1 for the first change of a set, and always one more for the next.

    Always: no filter is both in ``added`` and in ``removed``
    """

    serial: int
    added: tuple[str, ...]
    removed: tuple[str, ...]


class FilterSet:
    """The filters of one subscription, all of one kind, each once, and the serial of the last change.

    `BrokerQueues` makes changes in this set and in its trees together, so that messages are matched by the set.
    """

    __slots__ = ("filters", "kind", "serial")

    def __init__(self, kind: FilterKind, filters: Iterable[str] = ()) -> None:
        self.kind = kind
        self.filters = set(filters)
        self.serial = 0

    def difference(self, change: FilterChange) -> tuple[set[str], set[str]]:
        """Return (filters that ``change`` adds and the set lacks, filters that it removes and the set has)."""
        return set(change.added) - self.filters, self.filters & set(change.removed)

    def __len__(self) -> int:
        return len(self.filters)
