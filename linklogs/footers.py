"""Reads the Parquet footers of link logs.

A footer tells whether its file is a link log of a known version, the time of the file's records, and the files that the
file replaces.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyarrow import parquet

from recording.columns import COLUMNS, REPLACES_KEY, SCHEMA_VERSION, VERSION_KEY

STORED = {"string": ("BYTE_ARRAY", ("STRING",)), "int64": ("INT64", ("NONE", "INT"))}
"""For each type in recording/columns.py: the physical type in Parquet, and the permitted logical types."""
UNSIGNED = "isSigned=false"
NEEDED = ("kind", "at_us")
NO_LINK_LOG = "is incomplete, or not a Parquet file"
TYPES = {column.name: column.type for column in COLUMNS}


def wrong(metadata: parquet.FileMetaData) -> str | None:
    """Return why a file cannot be read as a link log, as text to follow the file's name; None if it can be read."""
    version = (metadata.metadata or {}).get(VERSION_KEY.encode())
    if version is None:
        return f"is not a link log: expected {VERSION_KEY} in its metadata"
    if not version.isdigit():
        return f"has version {version.decode(errors='replace')!r} of the link log: expected a number"
    if int(version) > SCHEMA_VERSION:
        said = f"has version {int(version)} of the link log: expected at most {SCHEMA_VERSION}"
        return f"{said}; a newer amqpmesh can read it"
    return _wrong_columns(metadata)


def _wrong_columns(metadata: parquet.FileMetaData) -> str | None:
    schema = metadata.schema
    found = dict(zip(schema.names, (schema.column(i) for i in range(len(schema))), strict=True))
    missing = [name for name in NEEDED if name not in found]
    if missing:
        return f"has no column {missing[0]}, which every link log has"
    for name, column in found.items():
        if name in TYPES and not _is_stored_as(column, TYPES[name]):
            return f"has a column {name} of type {_type_of(column)}: expected {TYPES[name]}"
    return None if len(found) == len(schema) else _said_twice(schema.names)


def _said_twice(names: Sequence[str]) -> str | None:
    twice = next((name for name in TYPES if names.count(name) > 1), None)
    return None if twice is None else f"has column {twice} twice, expected once"


def _type_of(column: parquet.ColumnSchema) -> str:
    logical = column.logical_type.type
    if logical == "INT":
        return f"{'u' if UNSIGNED in str(column.logical_type) else ''}{column.physical_type.lower()}"
    return str(column.physical_type if logical == "NONE" else logical).lower()


def _is_stored_as(column: parquet.ColumnSchema, wanted: str) -> bool:
    physical, logical = STORED[wanted]
    # Times and unsigned numbers have the physical type INT64, too: their logical types are refused.
    is_unsigned = column.logical_type.type == "INT" and UNSIGNED in str(column.logical_type)
    return column.physical_type == physical and column.logical_type.type in logical and not is_unsigned


def times(metadata: parquet.FileMetaData) -> tuple[int | None, int | None]:
    """Return the times of the first and the last record, from the statistics of row groups.

    Both times are None without such statistics.
    """
    place = metadata.schema.names.index("at_us")
    groups = [metadata.row_group(i).column(place) for i in range(metadata.num_row_groups)]
    known = [each.statistics for each in groups if each.is_stats_set and each.statistics.has_min_max]
    if not known:
        return None, None
    return min(each.min for each in known), max(each.max for each in known)


def replaces(metadata: parquet.FileMetaData) -> tuple[str, ...]:
    """Return the names of files in the same directory that this file replaces.

    The result is empty for a file that is no merged file, or whose metadata is unreadable.
    """
    try:
        names = json.loads((metadata.metadata or {}).get(REPLACES_KEY.encode(), b"[]"))
    except ValueError:
        return ()
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def first_line(error: Exception) -> str:
    """Return the first line of an error of Arrow, with ? for unprintable characters: Arrow may quote damaged bytes."""
    printable = "".join(each if each.isprintable() or each == "\n" else "?" for each in str(error)).strip()
    return printable.splitlines()[0] if printable else type(error).__name__
