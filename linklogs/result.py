"""The description of the tables that a Spark job wrote: the logs, the time and the options of the report.

From tables and description `amqpmesh report --tables` makes the report's page. The description is a table with a single
row, so that Spark can write it wherever Spark writes the other tables.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

NAME = "report"
"""The name of the table with the description."""
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
    """A directory lacks readable tables of a report; the message is a sentence for people, with the reason."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The description of a report's tables.

    ``from_us`` and ``to_us`` are the time of the report, None if no record shows a movement.
    """

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
    """Names of the tables, the most important first."""
    wider_us: list[tuple[str, int]]
    """(table, length of its windows) of each table with wider windows than requested."""
    near: list[str] = field(default_factory=list)
    """Addresses in the logs that resemble ``address``, if no address matches the pattern ``address``."""
    since_us: int | None = None
    until_us: int | None = None
    """The requested time, from ``since_us`` to ``until_us``; None: no limit was requested."""
    version: int = VERSION

    def to_table(self) -> pa.Table:
        return pa.Table.from_pylist([asdict(self)], SCHEMA)


def read_result(directory: Path) -> ReplayResult:
    """Read the description of the tables in ``directory``.

    Raise NoTables if the description is missing, unreadable, or of another version.
    """
    rows = read_table(directory, NAME).to_pylist()
    row = rows[0] if len(rows) == 1 else {}
    version = row.get("version")
    if version != VERSION:
        raise NoTables(
            f"{directory / NAME} has report version {version}: expected {VERSION}, as the Spark job now writes"
        )
    return ReplayResult(**row)


def read_table(directory: Path, name: str) -> pa.Table:
    """Read a table of a report. Raise NoTables if the table is missing or unreadable."""
    path = directory / name
    try:
        return parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if not path.exists():
            reason = f"the directory {name} is missing"
        raise NoTables(f"{directory} has no tables that spark-submit wrote: {reason}") from None
