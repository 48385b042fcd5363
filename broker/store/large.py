"""Large bodies, in a file each, synced before the rows that name them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar
from zlib import crc32

from broker.store.batch import StoreError
from broker.store.damage import DamagedBody

T = TypeVar("T")


class Lend(Protocol):
    """``broker.store.reserve.Reserve.lend_to``."""

    def __call__(self, work: Callable[[], T]) -> T: ...


class LargeBodies:
    """Files named by message id. One thread writes, one reads. ``lend`` makes room for writes."""

    def __init__(self, directory: Path, lend: Lend) -> None:
        self.directory = directory
        self._lend = lend
        self._unfinished: dict[int, int] = {}
        self.checksums: dict[int, int] = {}
        """CRC-32 of each body written since the store was opened, and not in a segment yet."""
        directory.mkdir(mode=0o700, exist_ok=True)

    def append(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        for message_id, piece in pieces:
            handle = self._unfinished.get(message_id)
            if handle is None:
                handle = self._unfinished[message_id] = self._lend(partial(self._create, message_id))
            self.checksums[message_id] = crc32(piece, self.checksums.get(message_id, 0))
            view = memoryview(piece)
            while view:
                view = view[self._lend(partial(os.write, handle, view)) :]

    def seal(self, message_ids: Collection[int]) -> None:
        """Sync complete bodies, and then their names."""
        for message_id in message_ids:
            handle = self._unfinished.pop(message_id)
            try:
                _sync(handle, self._path(message_id))
            finally:
                os.close(handle)
        if message_ids:
            sync_directory(self.directory)

    def finish(self, message_ids: Iterable[int]) -> None:
        """Close complete bodies that need not survive a restart."""
        for message_id in message_ids:
            os.close(self._unfinished.pop(message_id))

    def unlink(self, message_ids: Iterable[int]) -> None:
        for message_id in message_ids:
            handle = self._unfinished.pop(message_id, None)
            if handle is not None:
                os.close(handle)
            self.checksums.pop(message_id, None)
            self._lend(partial(self._path(message_id).unlink, missing_ok=True))

    def unlink_all_but(self, is_needed: Callable[[int], bool]) -> None:
        """After a crash: delete files whose row was never written, or is gone."""
        for path in self.directory.iterdir():
            if not (path.name.isdecimal() and is_needed(int(path.name))):
                path.unlink()

    def has_size(self, message_id: int, size_bytes: int) -> bool:
        """Whether the file has this size; a sealed file with another size was changed by somebody else."""
        return self.size_bytes(message_id) == size_bytes

    def read(self, message_id: int, offset: int, size_bytes: int) -> bytes:
        """Read a range. Raises FileNotFoundError, or DamagedBody if the file ends too early."""
        with self._path(message_id).open("rb", buffering=0) as body:
            body.seek(offset)
            found = body.read(size_bytes)
        if len(found) < size_bytes:
            raise DamagedBody(f"its file ends after {offset + len(found):,} bytes")
        return found

    def close(self) -> None:
        for handle in self._unfinished.values():
            os.close(handle)
        self._unfinished.clear()

    def _create(self, message_id: int) -> int:
        return os.open(self._path(message_id), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def size_bytes(self, message_id: int) -> int | None:
        try:
            return self._path(message_id).stat().st_size
        except FileNotFoundError:
            return None

    def _path(self, message_id: int) -> Path:
        return self.directory / str(message_id)


def sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _sync(handle, directory)
    finally:
        os.close(handle)


def sync_absence(path: Path) -> None:
    """Sync the absence of a file, or else its content."""
    if path.exists():
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            _sync(handle, path)
        finally:
            os.close(handle)
    sync_directory(path.parent)


def cut(path: Path, size_bytes: int) -> None:
    """Cut a file, giving its room back to the disk; delete the file if nothing is to be left."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(handle, size_bytes)
        # A journaling file system frees room only after the journal entry is written.
        _sync(handle, path)
    finally:
        os.close(handle)
    if not size_bytes:
        path.unlink()


def _sync(handle: int, path: Path) -> None:
    """Sync; raises StoreError, so that no caller retries."""
    try:
        os.fsync(handle)
    except OSError as error:
        raise StoreError(f"cannot sync {path}: {error}") from error
