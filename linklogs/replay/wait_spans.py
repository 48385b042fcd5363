"""Joins the records of a wait for credit, one for each second, into one row as long as there is no gap.

Producers without a taker wait for days; a row for each second would outnumber all movements.
"""

from __future__ import annotations

from typing import Final

import numpy
import pyarrow
from pyarrow import compute

from linklogs.moments import TimeSpan
from linklogs.replay.codes import LARGEST, Numbers, numbers
from recording.columns import RecordKind

NEXT_US: Final = 100_000
"""The greatest gap in us between two records that still belong to the same wait."""


def joined(table: pyarrow.Table, span: TimeSpan, times: str) -> pyarrow.Table:
    """Join the records of each wait for credit into one row, with the time of the last and the sum of `starved_us`.

    Column `took_us` is the time from the beginning of the first record to the last, and column ``times`` counts the
    records. Records on different sides of an end of ``span`` are not joined.
    """
    if not {"kind", "run", "link", "starved_us", "at_us"} <= set(table.column_names):
        return table
    is_wait = compute.and_(
        compute.equal(table["kind"], RecordKind.CREDIT.value),
        compute.greater(compute.fill_null(table["starved_us"], 0), 0),
    )
    is_wait = compute.fill_null(compute.and_(is_wait, compute.is_valid(table["at_us"])), False)
    waits = table.filter(is_wait).combine_chunks()
    if len(waits) < 2:
        return table
    rest = table.filter(compute.invert(is_wait))
    return pyarrow.concat_tables([rest, _as_few(waits, span, times)], promote_options="default")


def _as_few(waits: pyarrow.Table, span: TimeSpan, times: str) -> pyarrow.Table:
    keys = [_codes(waits[name]) for name in ("cause", "link", "run", "node") if name in waits.column_names]
    at_us, starved_us = numbers(waits, "at_us"), numpy.clip(numbers(waits, "starved_us"), 0, LARGEST)
    order = numpy.lexsort((at_us, *keys))
    at_us, starved_us, count = at_us[order], starved_us[order], numbers(waits, times, 1)[order]
    # A row of ``waits`` may already stand for several records of a wait, which began ``took_us`` before the row's time.
    from_us = at_us - numpy.maximum(starved_us, numbers(waits, "took_us")[order])
    begins = numpy.ones(len(order), bool)
    begins[1:] = from_us[1:] > at_us[:-1] + NEXT_US
    for key in (*(key[order] for key in keys), *_periods(at_us, span)):
        begins[1:] |= key[1:] != key[:-1]
    first = numpy.flatnonzero(begins)
    last = numpy.append(first[1:], len(order)) - 1
    found = waits.take(pyarrow.array(order[last]))
    columns = {
        "starved_us": numpy.add.reduceat(starved_us, first),
        "took_us": at_us[last] - from_us[first],
        times: numpy.add.reduceat(count, first),
    }
    for name, values in columns.items():
        column = pyarrow.array(values, pyarrow.int64())
        place = found.schema.get_field_index(name)
        found = found.append_column(name, column) if place < 0 else found.set_column(place, name, column)
    return found


def _periods(at_us: Numbers, span: TimeSpan) -> list[Numbers]:
    return [at_us >= end_us for end_us in (span.from_us, span.to_us) if end_us is not None]


def _codes(column: pyarrow.ChunkedArray) -> Numbers:
    """Return a number for each value of the column: equal values, and only these, have equal numbers."""
    plain = column.cast(column.type.value_type) if pyarrow.types.is_dictionary(column.type) else column
    encoded = pyarrow.concat_arrays(plain.chunks).dictionary_encode(null_encoding="encode")
    codes: Numbers = encoded.indices.to_numpy(zero_copy_only=False)
    return codes
