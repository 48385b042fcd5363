"""The live state of one node: its present connections, links, queues and paths, with which each file of the log opens.

Sans-IO: the state is made of the node's text records, given in order. A queue's row has no age, which would be wrong
by the time at which a file is written, but CAME_US, the time of its oldest message: `as_of` computes the age.
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
"""By kind of record, the column that identifies the thing; kinds in their order in the list, after the node itself."""

CAME_US: Final = "came_us"
"""When a queue's oldest message came, in us on the monotonic clock: in rows of the live state only, not in records."""
_LONGEST_US: Final = 2**63 - 1
_OF_THE_MOMENT: Final = ("starved_us", "count", "cpu_us", "resident_bytes", "connections", "links")
"""Columns left out of the list: sums since the record before, which reports would count again, and a node's load."""


class LiveState:
    """The rows of a node's present connections, links, neighbors, paths, queues and waits for credit.

    ``node`` is the node's row about itself. Always: if a link in the list names a connection that was ever opened, the
    connection is in the list, too.
    """

    def __init__(self, node: Row) -> None:
        self._node: Row = {**node, "kind": RecordKind.NODE, "event": RecordEvent.LIVE}
        self._rows: dict[RecordKind, dict[str | int, Row]] = {kind: {} for kind in _KEYS}
        self._links_of: dict[object, dict[str | int, None]] = {}

    def on_row(self, row: Row, at_us: int) -> None:
        """Bring the rows up to date with a text record of the node, made at ``at_us`` on the monotonic clock."""
        kind = RecordKind(str(row["kind"]))
        if kind is RecordKind.NODE:
            # The record of the node's end changes no row: no later file opens with the rows.
            self._node |= _lasting(row) if row.get("event") != RecordEvent.CLOSED else {}
        elif kind in _KEYS and (key := row.get(_KEYS[kind])) is not None:
            self._on_thing(kind, key, _with_time(row, at_us))

    def on_list(self, rows: Iterable[Row]) -> None:
        """Take over a list that `rows` returned, such as from a spool of an earlier writer.

        Ages of queues, which lists of older versions have, are dropped, since the time of such a list is unknown.
        """
        for row in rows:
            self.on_row({name: value for name, value in row.items() if name != "oldest_us"}, 0)

    def rows(self, clock_us: int, dropped: int) -> list[Row]:
        """Return the rows of the live state, the node's row about itself first.

        ``clock_us``: UTC less the monotonic clock, in us. ``dropped``: the count of records ever lost to a full ring.
        """
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
                # A record of a wait for credit has all columns of its kind, so the row before is replaced as a whole.
                # With credit, the wait is over, and the cause that the record gives is one of the past.
                is_over = row.get("credit") != 0
                self._rows[kind][key] = _lasting({name: row[name] for name in row if name != "cause" or not is_over})
            case RecordEvent.CHANGED:
                # A record of a queue's depth without an age is of an empty queue, whose row loses the time of the
                # oldest message.
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
    """Return a row of the live state as of ``at_us`` on the monotonic clock.

    In a queue's row the age of its oldest message replaces CAME_US, the time when the message came.
    """
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
