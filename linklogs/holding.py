"""While a report reads files of this machine, nobody who merges them takes any away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linklogs.compacting import reading


def is_local(path: str) -> bool:
    return "://" not in path or path.startswith("file://")


def local_path(path: str) -> str:
    """Absolute: Spark takes no relative ones."""
    return os.path.abspath(path.removeprefix("file://"))


@contextmanager
def held(path: str) -> Iterator[None]:
    """From before files are looked for until all are read. What lies elsewhere nobody can hold."""
    if not is_local(path):
        yield
        return
    with reading(Path(local_path(path))):
        yield
