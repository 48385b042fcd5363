"""Merges repeated state records: each file opens with a snapshot, most of which was in the file before, too.

Rows with equal facts about a connection, a link or a path become one row, with the last time and the count of rows. All
rows of neighbors stay, since the first time of a cost is history, and all rows about deliveries kept without outcome.
"""

from __future__ import annotations

from typing import Final

import pyarrow
from pyarrow import compute

from linklogs.moments import TimeSpan
from recording.columns import RecordEvent, RecordKind

TIMES: Final = "times"
"""Column with the number of records for which a row stands; null for one record."""
_PERIOD: Final = "period"
_KINDS: Final = pyarrow.array(
    [RecordKind.CONNECTION.value, RecordKind.LINK.value, RecordKind.CREDIT.value, RecordKind.PATH.value]
)


def merged(table: pyarrow.Table, span: TimeSpan) -> pyarrow.Table:
    """Merge repeated rows into one, with the number of merged rows in column TIMES.

    The rows may be of several nodes, in any order, and have all columns of records. Rows before, within and after the
    requested time are not merged with each other, so that each period can be counted.
    """
    is_repeated = _is_repeated(table)
    repeated = table.filter(is_repeated)
    facts = [name for name in table.column_names if name != "at_us" and repeated[name].null_count < len(repeated)]
    if not facts:
        return table
    apart = repeated.append_column(_PERIOD, _periods(repeated["at_us"], span))
    groups = apart.group_by([*facts, _PERIOD], use_threads=False).aggregate([("at_us", "max"), ([], "count_all")])
    once = groups.rename_columns([*facts, _PERIOD, "at_us", TIMES]).drop_columns([_PERIOD])
    return pyarrow.concat_tables([table.filter(compute.invert(is_repeated)), once], promote_options="default")


def _periods(at_us: pyarrow.ChunkedArray, span: TimeSpan) -> pyarrow.ChunkedArray:
    """Return a number for each record: how many of the span's two ends lie at or before the record's time."""
    period = pyarrow.chunked_array([pyarrow.repeat(pyarrow.scalar(0, pyarrow.int8()), len(at_us))])
    for end_us in (span.from_us, span.to_us):
        if end_us is not None:
            is_after = compute.fill_null(compute.greater_equal(at_us, end_us), False)
            period = compute.add(period, is_after.cast(pyarrow.int8()))
    return period


def _is_repeated(table: pyarrow.Table) -> pyarrow.ChunkedArray:
    """Tell for each row whether the row may be merged with equal ones: rows of snapshots about one of _KINDS may.

    Rows with time without credit must stay, because this time is added up, and rows with unsettled deliveries, too.
    """
    is_live = compute.and_kleene(
        compute.equal(table["event"], RecordEvent.LIVE.value), compute.is_in(table["kind"], _KINDS)
    )
    adds_nothing = compute.equal(compute.fill_null(table["starved_us"], 0), 0)
    lasts = compute.greater(compute.fill_null(table["unsettled_count"], 0), 0)
    is_same = compute.and_kleene(adds_nothing, compute.invert(lasts))
    return compute.fill_null(compute.and_kleene(is_live, is_same), False)
