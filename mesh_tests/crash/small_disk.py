"""A file system of its own, small, that a test may fill to the last byte."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mesh_tests.installed import require

CHUNK = bytes(1 << 20)


class SmallDisk:
    """Mounted at ``directory``. What fills it is not of the store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._filler = directory / "of-somebody-else"

    @property
    def free_bytes(self) -> int:
        """For all but root."""
        found = os.statvfs(self.directory)
        return found.f_bavail * found.f_frsize

    def fill(self) -> None:
        """To the last byte, of those too that only root may take. What others give back then is not taken."""
        with self._filler.open("ab", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(CHUNK)  # the last one only in part

    def fill_but(self, left_bytes: int) -> None:
        """Whoever else takes some meanwhile."""
        with self._filler.open("ab", buffering=0) as filler:
            while self.free_bytes > left_bytes:
                filler.write(CHUNK)

    def make_room(self) -> None:
        self._filler.unlink()

    def grow(self, size: str) -> None:
        """As mount says it."""
        _run("mount", "-o", f"remount,size={size}", str(self.directory))


@contextmanager
def tmpfs(directory: Path, size: str) -> Iterator[SmallDisk]:
    with _mounted(directory, "-t", "tmpfs", "-o", f"size={size}", "tmpfs"):
        yield SmallDisk(directory)


@contextmanager
def ext4(directory: Path, size: str) -> Iterator[SmallDisk]:
    image = directory.with_name(f"{directory.name}.img")
    _run("truncate", "-s", size, str(image))
    _run("mkfs.ext4", "-q", "-F", str(image))
    with _mounted(directory, "-o", "loop", str(image)):
        yield SmallDisk(directory)


@contextmanager
def _mounted(directory: Path, *what: str) -> Iterator[None]:
    require(os.geteuid() == 0, "root, to mount a small file system", "sudo make test")
    directory.mkdir()
    _run("mount", *what, str(directory))
    try:
        yield
    finally:
        _run("umount", str(directory))


def _run(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    require(ended.returncode == 0, f"what `{' '.join(command)}` needs ({ended.stderr.strip()})", "sudo make test")
