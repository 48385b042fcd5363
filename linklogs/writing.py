"""Result tables as files: Parquet for programs, CSV for spreadsheets.

A spreadsheet takes text that begins like a formula for one, and names of users and addresses come from clients: such a
cell gets a leading quote. Numbers stay as they are.
"""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyarrow import compute, csv, parquet

FORMULA = r"^(\s*[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"
"""The wide ones are those of East Asian keyboards, which some take for the same; some pass over spaces before it."""


def write(table: pa.Table, directory: Path, name: str, tz: ZoneInfo) -> None:
    """``<name>.parquet``, its times of UTC, and ``<name>.csv``, its times of ``tz``."""
    parquet.write_table(table, directory / f"{name}.parquet", compression="zstd")
    csv.write_csv(guarded(table, tz), directory / f"{name}.csv")


def guarded(table: pa.Table, tz: ZoneInfo) -> pa.Table:
    """As a CSV has it."""
    return pa.table({name: _guarded(table[name], tz) for name in table.column_names})


def ordered(table: pa.Table) -> pa.Table:
    """By time, then the busiest first; what has neither as it came."""
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
