"""Replaces long names in a report by nicknames, because container-ids of clients are often long and random.

The written tables keep the names; an additional table lists the name behind each nickname.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Final

import pyarrow as pa

from mesh.reports.summary import Summary

NICKNAMES: Final = "nicknames"
COLUMNS: Final = ("container", "name", "address", "subscriber")
LONGEST: Final = 20
"""The greatest length of a name that gets no nickname, in characters."""


def nicknamed(summary: Summary) -> Summary:
    """Return the summary with nicknames in place of long names, and with a table of nicknames, the busiest first."""
    by_column = {column: _nicknames(column, summary.tables) for column in COLUMNS}
    tables = {name: _with(table, by_column) for name, table in summary.tables.items()}
    return replace(summary, tables={**tables, NICKNAMES: _table(by_column)})


def _nicknames(column: str, tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """Choose the nicknames of a column's long names, as a map from name to nickname."""
    names = dict.fromkeys(_names(column, tables))
    free = (nickname for number in count(1) if (nickname := f"{column}-{number}") not in names)
    return {name: next(free) for name in names if len(name) > LONGEST}


def _names(column: str, tables: Mapping[str, pa.Table]) -> Iterator[str]:
    """Iterate over the names in a column of all tables, in the order of rows, whose first ones are the busiest."""
    for table in tables.values():
        if _has(table, column):
            yield from table[column].drop_null().unique().to_pylist()


def _has(table: pa.Table, column: str) -> bool:
    """Tell whether a table has ``column`` as text; a table without rows may lack types."""
    return column in table.column_names and pa.types.is_string(table.schema.field(column).type)


def _with(table: pa.Table, by_column: Mapping[str, Mapping[str, str]]) -> pa.Table:
    for column, nicknames in by_column.items():
        if _has(table, column) and nicknames:
            encoded = table[column].combine_chunks().dictionary_encode()
            shown = pa.array([nicknames.get(name, name) for name in encoded.dictionary.to_pylist()], pa.string())
            place = table.column_names.index(column)
            table = table.set_column(place, column, shown.take(encoded.indices))
    return table


def _table(by_column: Mapping[str, Mapping[str, str]]) -> pa.Table:
    rows = [(nickname, column, name) for column, names in by_column.items() for name, nickname in names.items()]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            title: pa.array(values, pa.string())
            for title, values in zip(("nickname", "column", "name"), columns, strict=True)
        }
    )
