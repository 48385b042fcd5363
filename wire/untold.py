"""What found no room in the ring, and is still to be told: of each thing all that a reader has to know who missed it.

A reader knows what is there from what it heard of it. So of a thing that it knows, the last that was to be told is
enough, or that it is gone; of one that it never heard of, how it is now; of one that came and went meanwhile, nothing.
Sans-IO. Rows are those of `addressing.link_log`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from addressing.link_log import Event, Kind

Row = dict[str, Any]
_Thing = tuple[str, object]

_NAMED_BY: Final = {
    Kind.CONNECTION: "connection",
    Kind.LINK: "link",
    Kind.CREDIT: "link",
    Kind.DROP: "link",
    Kind.NEIGHBOR: "neighbor",
    Kind.PATH: "egress",
    Kind.QUEUE: "queue",
}
_ADDED_UP: Final = ("starved_us", "count")
"""Columns of what lies between two records."""


@dataclass(slots=True)
class _Late:
    """``is_heard_of``: its reader knows the thing, as it was before."""

    row: Row
    is_heard_of: bool


class Untold:
    """The oldest first.

    Always: at most one row for each thing that is there, or that its reader takes to be there.
    """

    def __init__(self) -> None:
        self._late: dict[_Thing, _Late] = {}

    def __len__(self) -> int:
        return len(self._late)

    def add(self, row: Row) -> None:
        """What there was no room for, or is to be told after such."""
        thing = _thing_of(row)
        if thing is None:
            return
        if row.get("event") == Event.CLOSED:
            self._close(thing, row)
        elif thing in self._late:
            self._late[thing].row = _both(self._late[thing].row, row)
        else:
            is_new = row.get("event") == Event.OPENED
            self._late[thing] = _Late(row | {"event": Event.LIVE} if is_new else row, not is_new)

    def first(self) -> Row:
        return next(iter(self._late.values())).row

    def drop_first(self) -> None:
        del self._late[next(iter(self._late))]

    def _close(self, thing: _Thing, row: Row) -> None:
        before = self._late.pop(thing, None)
        if before is None or before.is_heard_of:
            # Behind what is to be told of its credit.
            self._late[thing] = _Late(row, is_heard_of=True)
        elif thing[0] == Kind.LINK:
            for what in (Kind.CREDIT, Event.DRAIN, Kind.DROP):
                self._late.pop((what, thing[1]), None)


def _thing_of(row: Row) -> _Thing | None:
    """How often a receiver asked for a drain is another thing than what its link has."""
    kind = Kind(row["kind"])
    what = Event.DRAIN if row.get("event") == Event.DRAIN else kind
    return (what, row[_NAMED_BY[kind]]) if kind in _NAMED_BY else None


def _both(before: Row, after: Row) -> Row:
    if before.get("event") == Event.CLOSED or after.get("event") == Event.OPENED:
        # It is there again: what it was like then is past.
        return after | {"event": Event.LIVE}
    if "depth_count" in after:
        # An empty queue has no age, and says none.
        before = {name: value for name, value in before.items() if name != "oldest_us"}
    added = {name: before[name] + after[name] for name in _ADDED_UP if name in before and name in after}
    event = {"event": before["event"]} if "event" in before else {}
    return before | after | added | event
