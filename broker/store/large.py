"""The files of large message bodies, one for each body, synced before the rows that name the bodies are written."""

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
    """The type of ``Reserve.lend_to``: does ``work``, and gives up reserved disk space if there is no room for it."""

    def __call__(self, work: Callable[[], T]) -> T: ...


class LargeBodies:
    """The files of a store's large message bodies, named by message id. One thread writes, one reads.

    ``lend`` is called to do each write, and makes room for it on a full disk.
    """

    def __init__(self, directory: Path, lend: Lend) -> None:
        self.directory = directory
        self._lend = lend
        self._unfinished: dict[int, int] = {}
        self.checksums: dict[int, int] = {}
        """message_id -> CRC-32 of each body written since the store was opened, until a segment has the checksum."""
        directory.mkdir(mode=0o700, exist_ok=True)

    def append(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Append pieces (message_id, bytes) to the files of their bodies, which are made if missing."""
        for message_id, piece in pieces:
            handle = self._unfinished.get(message_id)
            if handle is None:
                handle = self._unfinished[message_id] = self._lend(partial(self._create, message_id))
            self.checksums[message_id] = crc32(piece, self.checksums.get(message_id, 0))
            view = memoryview(piece)
            while view:
                view = view[self._lend(partial(os.write, handle, view)) :]

    def seal(self, message_ids: Collection[int]) -> None:
        """Sync and close the files of complete bodies, and then sync the names of the files."""
        for message_id in message_ids:
            handle = self._unfinished.pop(message_id)
            try:
                _sync(handle, self._path(message_id))
            finally:
                os.close(handle)
        if message_ids:
            sync_directory(self.directory)

    def finish(self, message_ids: Iterable[int]) -> None:
        """Close, without a sync, the files of complete bodies that need not survive a restart."""
        for message_id in message_ids:
            os.close(self._unfinished.pop(message_id))

    def unlink(self, message_ids: Iterable[int]) -> None:
        """Delete the files of these messages' bodies, complete or not."""
        for message_id in message_ids:
            handle = self._unfinished.pop(message_id, None)
            if handle is not None:
                os.close(handle)
            self.checksums.pop(message_id, None)
            self._lend(partial(self._path(message_id).unlink, missing_ok=True))

    def unlink_all_but(self, is_needed: Callable[[int], bool]) -> None:
        """Delete the files of bodies that no queue needs: after a crash, their rows were never written, or are gone."""
        for path in self.directory.iterdir():
            if not (path.name.isdecimal() and is_needed(int(path.name))):
                path.unlink()

    def has_size(self, message_id: int, size_bytes: int) -> bool:
        """Whether the file of a message's body has this size; False, too, if the file is missing."""
        return self.size_bytes(message_id) == size_bytes

    def read(self, message_id: int, offset: int, size_bytes: int) -> bytes:
        """Return a range of a body. Raises FileNotFoundError, or DamagedBody if the file ends within the range."""
        with self._path(message_id).open("rb", buffering=0) as body:
            body.seek(offset)
            found = body.read(size_bytes)
        if len(found) < size_bytes:
            raise DamagedBody(f"the file of the message's body ends after {offset + len(found):,} bytes, expected more")
        return found

    def close(self) -> None:
        for handle in self._unfinished.values():
            os.close(handle)
        self._unfinished.clear()

    def _create(self, message_id: int) -> int:
        return os.open(self._path(message_id), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def size_bytes(self, message_id: int) -> int | None:
        """Return the size of the file of a message's body; None if the file is missing."""
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
    """Sync the absence of a file, so that a power cut does not bring it back; or its content, if the file exists."""
    if path.exists():
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            _sync(handle, path)
        finally:
            os.close(handle)
    sync_directory(path.parent)


def cut(path: Path, size_bytes: int) -> None:
    """Cut a file to ``size_bytes``, which frees disk space; delete the file for size 0."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(handle, size_bytes)
        # The cut is synced, since a journaling file system frees room only once the journal entry is written.
        _sync(handle, path)
    finally:
        os.close(handle)
    if not size_bytes:
        path.unlink()


def _sync(handle: int, path: Path) -> None:
    """Sync an open file or directory. Raises StoreError on failure, so that no caller tries the sync again."""
    try:
        os.fsync(handle)
    except OSError as error:
        raise StoreError(f"cannot sync {path}: {error}") from error
