"""What files repeat: each opens with all that there was then, and most of that was there in the file before, too.

Rows that say the same of a connection, a link or a path are one. It is of the last time, and says how many it stands
for. Of neighbors each stays: when one had a cost first is history. So is for how long deliveries are kept.
"""

from __future__ import annotations

from typing import Final

import pyarrow
from pyarrow import compute

from addressing.link_log import Event, Kind
from linklogs.moments import Span

TIMES: Final = "times"
"""How many records a row stands for; null of one."""
_PERIOD: Final = "period"
_KINDS: Final = pyarrow.array([Kind.CONNECTION.value, Kind.LINK.value, Kind.CREDIT.value, Kind.PATH.value])


def merged(table: pyarrow.Table, span: Span) -> pyarrow.Table:
    """With TIMES. Rows of one node or of several, in any order, with all columns that records have.

    What is before the time that is asked for, of it and after it stays apart, so that it can be counted.
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


def _periods(at_us: pyarrow.ChunkedArray, span: Span) -> pyarrow.ChunkedArray:
    """At how many ends of it each record is, or after."""
    period = pyarrow.chunked_array([pyarrow.repeat(pyarrow.scalar(0, pyarrow.int8()), len(at_us))])
    for end_us in (span.from_us, span.to_us):
        if end_us is not None:
            is_after = compute.fill_null(compute.greater_equal(at_us, end_us), False)
            period = compute.add(period, is_after.cast(pyarrow.int8()))
    return period


def _is_repeated(table: pyarrow.Table) -> pyarrow.ChunkedArray:
    """True of what was there already, but for time without credit, which adds up, and what lasts."""
    is_live = compute.and_kleene(compute.equal(table["event"], Event.LIVE.value), compute.is_in(table["kind"], _KINDS))
    adds_nothing = compute.equal(compute.fill_null(table["starved_us"], 0), 0)
    lasts = compute.greater(compute.fill_null(table["unsettled_count"], 0), 0)
    is_same = compute.and_kleene(adds_nothing, compute.invert(lasts))
    return compute.fill_null(compute.and_kleene(is_live, is_same), False)
