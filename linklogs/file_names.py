"""Paths of the link log's files, and the names of their directories."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

HOUR_US: Final = 3_600_000_000
SUFFIX: Final = ".parquet"
UNREAD: Final = "_"
"""The first character of names that readers leave out."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR: Final = "%Y-%m-%dT%H"
# Hive and Spark read a percent sign and two digits as one byte, so characters beyond ASCII stay as they are.
_UNSAFE: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")


def escape(value: str) -> str:
    """Escape a value as Hive does in the names of partitions."""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", value)


def hour_of(at_us: int) -> str:
    """The hour in UTC. Raises OverflowError after the year 9999."""
    return (_EPOCH + timedelta(microseconds=at_us)).strftime(_HOUR)


def end_of_hour_us(at_us: int) -> int:
    return (at_us // HOUR_US + 1) * HOUR_US


def start_of_hour_us(hour: str) -> int:
    """Raises ValueError for text that is no hour, such as the name of a foreign directory."""
    begins = datetime.strptime(hour, _HOUR).replace(tzinfo=UTC)
    return (begins - _EPOCH) // timedelta(microseconds=1)


def directory_of(out: Path, node: str, at_us: int) -> Path:
    return out / f"node={escape(node)}" / f"hour={hour_of(at_us)}"


def file_name(run: int, first: int) -> str:
    """``first``: the number of the file's first slot. Names of one run sort in the order of writing."""
    return f"{run}-{first:012d}{SUFFIX}"


def hours(out: Path) -> list[tuple[int, Path]]:
    """All directories of an hour, with the time it began, the oldest first."""
    found = []
    for directory in out.glob("node=*/hour=*"):
        try:
            found.append((start_of_hour_us(directory.name.removeprefix("hour=")), directory))
        except ValueError:
            continue
    return sorted(found)


def size_of(path: Path) -> int | None:
    """The size in bytes; None for a file merged or deleted meanwhile."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def files_in(hour: Path) -> list[Path]:
    """The files that readers read, by name."""
    return sorted(path for path in hour.glob(f"*{SUFFIX}") if path.name[0] not in "_.")
