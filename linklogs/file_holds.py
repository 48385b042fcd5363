"""Keeps local files from being deleted by a merge while a report reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linklogs.compaction import reading

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
"""Hadoop takes `hdfs:/logs` and `file:/logs` too."""


def is_local(path: str) -> bool:
    return not _SCHEME.match(path) or path.startswith("file:")


def local_path(path: str) -> str:
    """Absolute, since Spark takes no relative paths."""
    return os.path.abspath(path.removeprefix("file://").removeprefix("file:"))


@contextmanager
def held(path: str) -> Iterator[None]:
    """Hold from before the search for files until all are read. Remote files cannot be held."""
    if not is_local(path):
        yield
        return
    with reading(Path(local_path(path))):
        yield
