"""Describes the tables that a job wrote: logs, time and options, so that a page can be made elsewhere.

The description is another table with a single row, and so can be wherever Spark writes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

NAME = "report"
"""Name of the table."""
VERSION = 1
SCHEMA = pa.schema(
    [
        ("version", pa.int64()),
        ("logs", pa.string()),
        ("address", pa.string()),
        ("window_us", pa.int64()),
        ("records", pa.int64()),
        ("size_bytes", pa.int64()),
        ("left_out", pa.list_(pa.string())),
        ("from_us", pa.int64()),
        ("to_us", pa.int64()),
        ("seconds", pa.float64()),
        ("tables", pa.list_(pa.string())),
        ("wider_us", pa.map_(pa.string(), pa.int64())),
        ("near", pa.list_(pa.string())),
        ("since_us", pa.int64()),
        ("until_us", pa.int64()),
    ]
)


class NoTables(Exception):
    """There is nothing to make a page of; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """``from_us`` and ``to_us`` are None if nothing moved."""

    logs: str
    address: str | None
    window_us: int
    records: int
    size_bytes: int
    left_out: list[str]
    from_us: int | None
    to_us: int | None
    seconds: float
    tables: list[str]
    """In the order in which they are worth reading."""
    wider_us: list[tuple[str, int]]
    """By table, windows that are wider than requested."""
    near: list[str] = field(default_factory=list)
    """Existing addresses, if none matches ``address``."""
    since_us: int | None = None
    until_us: int | None = None
    """The requested time."""
    version: int = VERSION

    def to_table(self) -> pa.Table:
        return pa.Table.from_pylist([asdict(self)], SCHEMA)


def read_result(directory: Path) -> ReplayResult:
    """Raise NoTables if no job, or a job of a newer amqpmesh, wrote the tables."""
    rows = read_table(directory, NAME).to_pylist()
    row = rows[0] if len(rows) == 1 else {}
    version = row.get("version")
    if version != VERSION:
        raise NoTables(f"{directory / NAME} has report version {version}: expected {VERSION}")
    return ReplayResult(**row)


def read_table(directory: Path, name: str) -> pa.Table:
    """Raise NoTables if the table is missing or unreadable."""
    path = directory / name
    try:
        return parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if not path.exists():
            reason = f"the directory {name} is missing"
        raise NoTables(f"{directory} has no tables that spark-submit wrote: {reason}") from None
