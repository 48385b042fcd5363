"""The present state of one node, with which each file opens. Sans-IO: feed the rows of text records, in order.

A queue in the list has no age, which would be wrong once the list is read, but CAME_US: `as_of` computes the age.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from linklogs.writer.rows import Row
from recording.columns import RecordEvent, RecordKind

_KEYS: Final = {
    RecordKind.CONNECTION: "connection",
    RecordKind.LINK: "link",
    RecordKind.NEIGHBOR: "neighbor",
    RecordKind.PATH: "egress",
    RecordKind.QUEUE: "queue",
    RecordKind.CREDIT: "link",
}
"""In the order of the list, which begins with the node."""

CAME_US: Final = "came_us"
"""No column of a record: when the oldest message came, in us on the monotonic clock."""
_LONGEST_US: Final = 2**63 - 1
_OF_THE_MOMENT: Final = ("starved_us", "count")
"""Sums between two records: in the list, these would count again."""


class LiveState:
    """Always: a link in the list has its connection there, if the link names a connection that was ever opened

    ``node`` is the node's row about itself.
    """

    def __init__(self, node: Row) -> None:
        self._node: Row = {**node, "kind": RecordKind.NODE, "event": RecordEvent.LIVE}
        self._rows: dict[RecordKind, dict[str | int, Row]] = {kind: {} for kind in _KEYS}
        self._links_of: dict[object, dict[str | int, None]] = {}

    def on_row(self, row: Row, at_us: int) -> None:
        """``at_us``: the time of the record on the monotonic clock."""
        kind = RecordKind(str(row["kind"]))
        if kind is RecordKind.NODE:
            # The end of the node is its last record.
            self._node |= _lasting(row) if row.get("event") != RecordEvent.CLOSED else {}
        elif kind in _KEYS and (key := row.get(_KEYS[kind])) is not None:
            self._on_thing(kind, key, _with_time(row, at_us))

    def on_list(self, rows: Iterable[Row]) -> None:
        """Take over a list from `rows`. Ages in lists of older versions are dropped, since their time is unknown."""
        for row in rows:
            self.on_row({name: value for name, value in row.items() if name != "oldest_us"}, 0)

    def rows(self, clock_us: int, dropped: int) -> list[Row]:
        """The list. ``clock_us``: UTC less the monotonic clock. ``dropped``: records ever lost for want of room."""
        node: Row = {**self._node, "clock_us": clock_us, "count": dropped}
        return [node, *(row for rows in self._rows.values() for row in rows.values())]

    def _on_thing(self, kind: RecordKind, key: str | int, row: Row) -> None:
        match row.get("event"):
            case RecordEvent.CLOSED:
                self._close(kind, key)
            case RecordEvent.OPENED | RecordEvent.LIVE:
                self._rows[kind][key] = _lasting(row)
                if kind is RecordKind.LINK:
                    self._links_of.setdefault(row.get("connection"), {})[key] = None
            case RecordEvent.CHANGED if kind is RecordKind.CREDIT:
                # The record is complete: its cause belongs to this wait.
                self._rows[kind][key] = _lasting(row)
            case RecordEvent.CHANGED:
                # An empty queue has no age, and reports none.
                past = CAME_US if "depth_count" in row else None
                before = {name: value for name, value in self._rows[kind].get(key, {}).items() if name != past}
                self._rows[kind][key] = before | _lasting(row)

    def _close(self, kind: RecordKind, key: str | int) -> None:
        row = self._rows[kind].pop(key, {})
        if kind is RecordKind.LINK:
            self._rows[RecordKind.CREDIT].pop(key, None)
            self._links_of.get(row.get("connection"), {}).pop(key, None)
        elif kind is RecordKind.CONNECTION:
            for link in self._links_of.pop(key, {}).copy():
                self._close(RecordKind.LINK, link)


def as_of(row: Row, at_us: int) -> Row:
    """A row of the list as of ``at_us`` on the monotonic clock."""
    if CAME_US not in row:
        return row
    age_us = min(max(0, at_us - int(row[CAME_US])), _LONGEST_US)
    return {name: value for name, value in row.items() if name != CAME_US} | {"oldest_us": age_us}


def _with_time(row: Row, at_us: int) -> Row:
    if "oldest_us" not in row:
        return row
    age_us = int(row["oldest_us"])
    return {name: value for name, value in row.items() if name != "oldest_us"} | {CAME_US: at_us - age_us}


def _lasting(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _OF_THE_MOMENT} | {"event": RecordEvent.LIVE}
