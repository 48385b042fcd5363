"""Pending records: state records that found no room in the ring, merged into one row for each thing.

A thing is a connection, link, neighbor, path or queue, or a link's credit, drains or drops. A reader of the link log
knows each thing that an earlier record announced. For a known thing, the latest state is enough, or the news that the
thing is gone; for an unannounced thing, the present state; for a thing that came and went unannounced, no row at all.
Sans-IO. Rows have the columns of `recording.columns`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from recording.columns import RecordEvent, RecordKind

Row = dict[str, Any]
_Thing = tuple[str, object]

_NAMED_BY: Final = {
    RecordKind.CONNECTION: "connection",
    RecordKind.LINK: "link",
    RecordKind.CREDIT: "link",
    RecordKind.DROP: "link",
    RecordKind.NEIGHBOR: "neighbor",
    RecordKind.PATH: "egress",
    RecordKind.QUEUE: "queue",
}
_ADDED_UP: Final = ("starved_us", "count")
"""Columns that cover the time since the record before, so merging two pending records adds their values up."""


@dataclass(slots=True)
class _Late:
    """A pending record. ``is_heard_of``: an earlier record in the ring announced the row's thing to the reader."""

    row: Row
    is_heard_of: bool


class PendingRecords:
    """Keeps state records until the ring has room for them, the oldest first, and merges records of the same thing.

    Always: at most one row for each thing that exists, or that the reader of the link log believes to exist.
    """

    def __init__(self) -> None:
        self._late: dict[_Thing, _Late] = {}

    def __len__(self) -> int:
        return len(self._late)

    def add(self, row: Row) -> None:
        """Keep ``row``, merged with a pending row of the same thing, until the ring has room for it.

        A row about the node itself is not kept.
        """
        thing = _thing_of(row)
        if thing is None:
            return
        if row.get("event") == RecordEvent.CLOSED:
            self._close(thing, row)
        elif thing in self._late:
            self._late[thing].row = _both(self._late[thing].row, row)
        else:
            is_new = row.get("event") == RecordEvent.OPENED
            self._late[thing] = _Late(row | {"event": RecordEvent.LIVE} if is_new else row, not is_new)

    def first(self) -> Row:
        return next(iter(self._late.values())).row

    def drop_first(self) -> None:
        del self._late[next(iter(self._late))]

    def _close(self, thing: _Thing, row: Row) -> None:
        before = self._late.pop(thing, None)
        if before is None or before.is_heard_of:
            # The row that says that a link ended has to come behind the pending rows about the link's credit.
            self._late[thing] = _Late(row, is_heard_of=True)
        elif thing[0] == RecordKind.LINK:
            for what in (RecordKind.CREDIT, RecordEvent.DRAIN, RecordKind.DROP):
                self._late.pop((what, thing[1]), None)


def _thing_of(row: Row) -> _Thing | None:
    """Return the key of the thing that ``row`` describes; None for a record that is not kept, such as the node's own.

    The key is kind and number, or kind and name. Drains that a receiver asked for have another key than the credit of
    the same link.
    """
    kind = RecordKind(row["kind"])
    what = RecordEvent.DRAIN if row.get("event") == RecordEvent.DRAIN else kind
    return (what, row[_NAMED_BY[kind]]) if kind in _NAMED_BY else None


def _both(before: Row, after: Row) -> Row:
    if before.get("event") == RecordEvent.CLOSED or after.get("event") == RecordEvent.OPENED:
        # The thing (a neighbor, for example) ended and exists again: the merged row drops its earlier state, and
        # announces the thing as live.
        return after | {"event": RecordEvent.LIVE}
    if "depth_count" in after:
        # A row of an empty queue has no age of an oldest message, so the age in the earlier row of the queue must not
        # get into the merged row.
        before = {name: value for name, value in before.items() if name != "oldest_us"}
    added = {name: before[name] + after[name] for name in _ADDED_UP if name in before and name in after}
    event = {"event": before["event"]} if "event" in before else {}
    return before | after | added | event
