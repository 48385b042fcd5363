"""Writes files that only owner and group can read, and that are complete as soon as they have their final names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

FILE_MODE = 0o640
DIRECTORY_MODE = 0o750
OTHERS = 0o027
"""The umask of private files: no permissions for others, and none to write for the group."""


@contextmanager
def kept_private() -> Iterator[None]:
    """Let all new files of this process be private (no access for others) while the context lasts.

    Existing files keep their permissions.
    """
    before = os.umask(OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def make_private(directory: Path) -> None:
    """Make the directory and all files in the directory private. Raises PermissionError for a file of another user."""
    directory.chmod(DIRECTORY_MODE)
    for path in directory.rglob("*"):
        path.chmod(DIRECTORY_MODE if path.is_dir() else FILE_MODE)


def make_directories(path: Path) -> None:
    """Make the directory, and missing directories above it, as private ones, and sync their names to the disk.

    A directory that exists keeps its permissions.
    """
    if path.is_dir():
        return
    make_directories(path.parent)
    path.mkdir(exist_ok=True)
    path.chmod(DIRECTORY_MODE)
    sync(path.parent)


def create(path: Path) -> int:
    """Create a private file, or empty an existing file; return a descriptor to read and write."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    os.fchmod(handle, FILE_MODE)
    return handle


@contextmanager
def replacing(path: Path, draft: Path) -> Iterator[BinaryIO]:
    """Replace the file at ``path`` by what the context writes: to ``draft`` first, synced, and renamed at the end.

    After an error before the renaming, ``draft`` is deleted, and ``path`` is as before.
    """
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
    """Sync the directory to the disk, so that a power cut takes no name of a file in the directory."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
