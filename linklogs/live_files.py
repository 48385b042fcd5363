"""The files of a directory of link logs that count: all but files replaced by a merged file and not deleted yet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pyarrow
from pyarrow import parquet

from linklogs.file_names import files_in, hours
from recording.columns import REPLACES_KEY

MERGED: Final = ".to."
"""In the name of each merged file, and of no other."""


def live_files(directory: Path) -> list[Path]:
    """Live files of all nodes and hours, the oldest hour first. Only footers of merged files are read."""
    return [path for _, hour in hours(directory) for path in live_files_in(hour)]


def live_files_in(hour: Path) -> list[Path]:
    # Listed once: a merged file that comes later does not count, and the files replaced by it still do.
    found = files_in(hour)
    replaced = {name for path in found for name in replaced_by(path)}
    return [path for path in found if path.name not in replaced]


def replaced_in(hour: Path) -> set[str]:
    """Names of replaced files, whether they still exist or not."""
    return {name for path in files_in(hour) for name in replaced_by(path)}


def replaced_by(path: Path) -> list[str]:
    """Names of files that this file replaces; none for a file not merged, no Parquet, or deleted meanwhile."""
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
