"""Paths of the files of link logs: `node=<name>/hour=<hour>/<file>.parquet`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

HOUR_US: Final = 3_600_000_000
SUFFIX: Final = ".parquet"
UNREAD: Final = "_"
"""The first character of the names of drafts and spools: readers of link logs ignore such names."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR: Final = "%Y-%m-%dT%H"
# Only ASCII characters are escaped: Hive and Spark read a percent sign with two digits as one byte, so they could not
# read a longer character back.
_UNSAFE: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")


def escape(value: str) -> str:
    """Escape a node's name for the name of a file or directory, as Hive does in the names of partitions."""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", value)


def hour_of(at_us: int) -> str:
    """Return the hour in UTC of a time, such as `2026-11-24T13`. Raises OverflowError after the year 9999."""
    return (_EPOCH + timedelta(microseconds=at_us)).strftime(_HOUR)


def end_of_hour_us(at_us: int) -> int:
    return (at_us // HOUR_US + 1) * HOUR_US


def start_of_hour_us(hour: str) -> int:
    """Return when an hour such as `2026-11-24T13` began, in us since 1970. Raises ValueError for other text."""
    begins = datetime.strptime(hour, _HOUR).replace(tzinfo=UTC)
    return (begins - _EPOCH) // timedelta(microseconds=1)


def directory_of(out: Path, node: str, at_us: int) -> Path:
    return out / f"node={escape(node)}" / f"hour={hour_of(at_us)}"


def file_name(run: int, first: int) -> str:
    """Return the name of a file of a node's run; ``first``: the number of the file's first slot within the run.

    The names of one run sort in the order in which the files were written.
    """
    return f"{run}-{first:012d}{SUFFIX}"


def hours(out: Path) -> list[tuple[int, Path]]:
    """Return the start of the hour in us, and the path, of each directory of a node and hour, the oldest hour first."""
    found = []
    for directory in out.glob("node=*/hour=*"):
        try:
            found.append((start_of_hour_us(directory.name.removeprefix("hour=")), directory))
        except ValueError:
            continue
    return sorted(found)


def size_of(path: Path) -> int | None:
    """Return the size of the file in bytes; None for a file that was merged or deleted meanwhile."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def files_in(hour: Path) -> list[Path]:
    """Return the Parquet files in the directory of an hour, by name, without drafts."""
    return sorted(path for path in hour.glob(f"*{SUFFIX}") if path.name[0] not in "_.")
