"""How does a file come to be that only its owner and group read, and that is whole as soon as it has its name?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

FILE_MODE = 0o640
DIRECTORY_MODE = 0o750
OTHERS = 0o027
"""What nobody but owner and group may."""


@contextmanager
def kept_private() -> Iterator[None]:
    """What this process makes meanwhile, by whatever library, is so; what was there stays as it is."""
    before = os.umask(OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def make_private(directory: Path) -> None:
    """All that is in it, whoever made it, and itself."""
    directory.chmod(DIRECTORY_MODE)
    for path in directory.rglob("*"):
        path.chmod(DIRECTORY_MODE if path.is_dir() else FILE_MODE)


def make_directories(path: Path) -> None:
    """Those that are missing, for good."""
    if path.is_dir():
        return
    make_directories(path.parent)
    path.mkdir(exist_ok=True)
    path.chmod(DIRECTORY_MODE)
    sync(path.parent)


def create(path: Path) -> int:
    """Its descriptor, to read and write. What was there is gone."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    os.fchmod(handle, FILE_MODE)
    return handle


@contextmanager
def replacing(path: Path, draft: Path) -> Iterator[BinaryIO]:
    """Write to ``draft``; then that is ``path``, for good. If it fails ``draft`` is gone, and ``path`` as before."""
    try:
        with os.fdopen(create(draft), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(directory: Path) -> None:
    """The names in it."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
