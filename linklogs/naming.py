"""Where does a file of the link log lie, and what do the names of its directories say?"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

HOUR_US: Final = 3_600_000_000
SUFFIX: Final = ".parquet"
UNREAD: Final = "_"
"""What a name begins with that readers leave out."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR: Final = "%Y-%m-%dT%H"
# Of characters beyond ASCII, Hive and Spark read a percent sign and two digits as one byte: these stay as they are.
_UNSAFE: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")


def escape(value: str) -> str:
    """As Hive does in the names of partitions."""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", value)


def hour_of(at_us: int) -> str:
    """The hour of UTC. Raises OverflowError after the year 9999."""
    return (_EPOCH + timedelta(microseconds=at_us)).strftime(_HOUR)


def end_of_hour_us(at_us: int) -> int:
    return (at_us // HOUR_US + 1) * HOUR_US


def start_of_hour_us(hour: str) -> int:
    """Raises ValueError for what is no hour, such as the name of somebody else's directory."""
    begins = datetime.strptime(hour, _HOUR).replace(tzinfo=UTC)
    return (begins - _EPOCH) // timedelta(microseconds=1)


def directory_of(out: Path, node: str, at_us: int) -> Path:
    return out / f"node={escape(node)}" / f"hour={hour_of(at_us)}"


def file_name(run: int, first: int) -> str:
    """``first``: the number of its first slot. Names of one run sort as they were written."""
    return f"{run}-{first:012d}{SUFFIX}"


def hours(out: Path) -> list[tuple[int, Path]]:
    """All directories of an hour, with when it began, the oldest first."""
    found = []
    for directory in out.glob("node=*/hour=*"):
        try:
            found.append((start_of_hour_us(directory.name.removeprefix("hour=")), directory))
        except ValueError:
            continue
    return sorted(found)


def size_of(path: Path) -> int | None:
    """In bytes; None for a file that somebody merged or deleted meanwhile."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def files_in(hour: Path) -> list[Path]:
    """Those that readers read, by name."""
    return sorted(path for path in hour.glob(f"*{SUFFIX}") if path.name[0] not in "_.")
