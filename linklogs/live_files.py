"""Which files of a directory of link logs count? All but those that a merged one replaces and that are still there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pyarrow
from pyarrow import parquet

from addressing.link_log import REPLACES_KEY
from linklogs.naming import files_in, hours

MERGED: Final = ".to."
"""In the name of each merged file, and of no other."""


def live_files(directory: Path) -> list[Path]:
    """Of all nodes and hours, the oldest hour first. Footers are read of merged files only."""
    return [path for _, hour in hours(directory) for path in live_files_in(hour)]


def live_files_in(hour: Path) -> list[Path]:
    # Listed once: a merged file that came after that does not count, nor do those go that it replaces.
    found = files_in(hour)
    replaced = {name for path in found for name in replaced_by(path)}
    return [path for path in found if path.name not in replaced]


def replaced_in(hour: Path) -> set[str]:
    """Names, of files that are there or are not any more."""
    return {name for path in files_in(hour) for name in replaced_by(path)}


def replaced_by(path: Path) -> list[str]:
    """None for a file that is not merged, is no Parquet, or is gone meanwhile."""
    if MERGED not in path.name:
        return []
    try:
        found = parquet.read_metadata(path).metadata or {}
        names = json.loads(found.get(REPLACES_KEY.encode(), b"[]"))
    except (OSError, ValueError, pyarrow.ArrowException):
        return []
    if not isinstance(names, list):
        return []
    return [name for name in names if isinstance(name, str) and name != path.name]
