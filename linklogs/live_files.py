"""The live files of link logs: all files except those that a merged file in the same directory replaces.

Replaced files may stay for a while until they are deleted; readers of link logs read live files only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pyarrow
from pyarrow import parquet

from linklogs.file_names import files_in, hours
from recording.columns import REPLACES_KEY

MERGED: Final = ".to."
"""Text in the name of each merged file, and of no other file."""


def live_files(directory: Path) -> list[Path]:
    """Return the live files of all nodes and hours, the oldest hour first.

    Only Parquet footers are read, and only of merged files.
    """
    return [path for _, hour in hours(directory) for path in live_files_in(hour)]


def live_files_in(hour: Path) -> list[Path]:
    """Return the live files in the directory of an hour, by name: those that no merged file there replaces."""
    # The directory is listed once: a merged file that appears later is not returned, and the files it replaces are.
    found = files_in(hour)
    replaced = {name for path in found for name in replaced_by(path)}
    return [path for path in found if path.name not in replaced]


def replaced_in(hour: Path) -> set[str]:
    """Return the names of all files that merged files in the directory of an hour replace, deleted or not."""
    return {name for path in files_in(hour) for name in replaced_by(path)}


def replaced_by(path: Path) -> list[str]:
    """Return the names of files that the file at ``path`` replaces.

    The result is empty for a file that is not a merged file, is unreadable as Parquet, or was deleted meanwhile.
    """
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
