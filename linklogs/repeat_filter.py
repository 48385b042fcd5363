"""Drops repeated records as files of a link log are merged: each file opens with a snapshot, which repeats known state.

A snapshot is a record with event LIVE for each connection, link, queue, neighbor and path. LIVE records outside of
snapshots are kept: if the ring had no room when a thing began, a later LIVE record is the first record of the thing.
"""

from __future__ import annotations

from typing import Final

import pyarrow
from pyarrow import compute

from recording.columns import RecordEvent, RecordKind

_NUMBERS: Final = ("queue", "link", "connection")
_NAMES: Final = ("neighbor", "egress")
"""Columns that identify the thing of a record, within its kind and run: the first with a value in each list.

A record of credit counts as a record of its link.
"""
_BEGINS: Final = pyarrow.array([RecordEvent.LIVE.value, RecordEvent.OPENED.value])


class RepeatFilter:
    """Drops snapshot records of things (connections, links, queues, neighbors, paths) that earlier files have.

    Expects the files of one node in order of time.
    """

    def __init__(self) -> None:
        self._things: set[str] = set()

    def news_of(self, found: pyarrow.Table, begun: dict[int, int]) -> pyarrow.Table:
        """Return the state records ``found`` in a file, without those records of its snapshot whose connection, link or
        other thing has an earlier record.

        ``begun`` has the time of the file's snapshot for each run: empty for a new file, and filled in here.
        """
        is_live = compute.fill_null(compute.equal(found["event"], RecordEvent.LIVE), False)
        is_node = compute.equal(found["kind"], RecordKind.NODE)
        opens = found.filter(compute.and_(is_live, is_node))
        for run, at_us in zip(opens["run"].to_pylist(), opens["at_us"].to_pylist(), strict=True):
            begun.setdefault(run, at_us)
        is_first = compute.is_in(found["at_us"], pyarrow.array([*begun.values()], pyarrow.int64()))
        is_listed = compute.and_(compute.and_(is_live, is_first), compute.invert(is_node))
        is_known = compute.is_in(_things(found), pyarrow.array(sorted(self._things), pyarrow.string()))
        begins = found.filter(compute.and_(compute.is_in(found["event"], _BEGINS), compute.invert(is_known)))
        self._things.update(_things(begins).to_pylist())
        return found.filter(compute.invert(compute.and_(is_listed, is_known)))


def _things(found: pyarrow.Table) -> pyarrow.ChunkedArray:
    """Return a text for each record, equal for all records of the same connection, link, queue, neighbor or path of a
    run.
    """
    is_credit = compute.equal(found["kind"], RecordKind.CREDIT)
    kind = compute.if_else(is_credit, RecordKind.LINK.value, found["kind"].cast(pyarrow.string()))
    number = compute.coalesce(*(found[name] for name in _NUMBERS)).cast(pyarrow.string())
    name = compute.coalesce(*(found[name].cast(pyarrow.string()) for name in _NAMES))
    parts = (kind, found["run"].cast(pyarrow.string()), number, name)
    return compute.binary_join_element_wise(*parts, "/", null_handling="replace", null_replacement="")
