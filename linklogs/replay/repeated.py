"""What files repeat: each opens with all that there was then, and most of that was there in the file before, too.

Rows that say the same of a connection, a link or a path are one. It is of the last time, and says how many it stands
for. Of neighbors each stays: when one had a cost first is history.
"""

from __future__ import annotations

from typing import Final

import pyarrow
from pyarrow import compute

from addressing.link_log import Event, Kind

TIMES: Final = "times"
"""How many records a row stands for; null of one."""
_KINDS: Final = pyarrow.array([Kind.CONNECTION.value, Kind.LINK.value, Kind.CREDIT.value, Kind.PATH.value])


def merged(table: pyarrow.Table) -> pyarrow.Table:
    """With TIMES. Rows of one node or of several, in any order, with all columns that records have."""
    is_repeated = _is_repeated(table)
    repeated = table.filter(is_repeated)
    facts = [name for name in table.column_names if name != "at_us" and repeated[name].null_count < len(repeated)]
    if not facts:
        return table
    groups = repeated.group_by(facts, use_threads=False).aggregate([("at_us", "max"), ([], "count_all")])
    once = groups.rename_columns([*facts, "at_us", TIMES])
    return pyarrow.concat_tables([table.filter(compute.invert(is_repeated)), once], promote_options="default")


def _is_repeated(table: pyarrow.Table) -> pyarrow.ChunkedArray:
    """True of what was there already, but for time without credit: that adds up."""
    is_live = compute.and_kleene(compute.equal(table["event"], Event.LIVE.value), compute.is_in(table["kind"], _KINDS))
    adds_nothing = compute.equal(compute.fill_null(table["starved_us"], 0), 0)
    return compute.fill_null(compute.and_kleene(is_live, adds_nothing), False)
