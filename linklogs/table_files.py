"""Writes the tables of a report as files: Parquet for programs, CSV for spreadsheets.

A spreadsheet evaluates text that begins like a formula, and names of users and addresses come from clients: in CSV such
text gets a leading quote. Numbers stay as they are.
"""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyarrow import compute, csv, parquet

FORMULA = r"^(\s*[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"
"""The beginning of text that a spreadsheet may evaluate.

Some spreadsheets accept the East Asian wide forms of = + - @, too, and some skip spaces before these characters.
"""


def write(table: pa.Table, directory: Path, name: str, tz: ZoneInfo) -> None:
    """Write ``<name>.parquet`` with times in UTC, and ``<name>.csv`` with times in ``tz``."""
    parquet.write_table(table, directory / f"{name}.parquet", compression="zstd")
    csv.write_csv(guarded(table, tz), directory / f"{name}.csv")


def guarded(table: pa.Table, tz: ZoneInfo) -> pa.Table:
    """Return the table as written to CSV: times as text in ``tz``, and a quote before text that may be a formula."""
    return pa.table({name: _guarded(table[name], tz) for name in table.column_names})


def ordered(table: pa.Table) -> pa.Table:
    """Sort the rows of a table by time, then by messages or time without credit, the most first.

    Without any of these columns, the order stays.
    """
    rising = [name for name in ("window", "at") if name in table.column_names]
    falling = [name for name in ("messages", "starved_us") if name in table.column_names]
    keys = [*((name, "ascending") for name in rising), *((name, "descending") for name in falling)]
    return table.sort_by(keys) if keys else table


def _guarded(column: pa.ChunkedArray, tz: ZoneInfo) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return compute.strftime(column.cast(pa.timestamp("ms", tz.key), safe=False), "%Y-%m-%dT%H:%M:%S%z")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return compute.replace_substring_regex(column, FORMULA, r"'\1")
    return column
