"""Keeps local files of link logs from being deleted by a merge (compaction) while a report reads the files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linklogs.compaction import reading

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
"""The beginning of a URL, with one slash or more: Hadoop accepts `hdfs:/logs` and `file:/logs`, too."""


def is_local(path: str) -> bool:
    """Whether a path or URL given to a report is on this machine: it has no URL scheme, or begins with `file:`."""
    return not _SCHEME.match(path) or path.startswith("file:")


def local_path(path: str) -> str:
    """Return a local path, or `file:` URL, as an absolute path: Spark takes no relative paths."""
    return os.path.abspath(path.removeprefix("file://").removeprefix("file:"))


@contextmanager
def held(path: str) -> Iterator[None]:
    """Keep merges from deleting replaced files of link logs below ``path`` while the context lasts.

    For a remote path the context does nothing. Callers enter the context before they search for files, and leave the
    context once all files are read.
    """
    if not is_local(path):
        yield
        return
    with reading(Path(local_path(path))):
        yield
