"""While a report reads files of this machine, nobody who merges them takes any away."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linklogs.compacting import reading

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
"""Hadoop takes `hdfs:/logs` and `file:/logs` too."""


def is_local(path: str) -> bool:
    return not _SCHEME.match(path) or path.startswith("file:")


def local_path(path: str) -> str:
    """Absolute: Spark takes no relative ones."""
    return os.path.abspath(path.removeprefix("file://").removeprefix("file:"))


@contextmanager
def held(path: str) -> Iterator[None]:
    """From before files are looked for until all are read. What lies elsewhere nobody can hold."""
    if not is_local(path):
        yield
        return
    with reading(Path(local_path(path))):
        yield
