"""Bodies too large for a row: a file each, synced before the row that names it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from broker.store.damage import DamagedBody


class LargeBodies:
    """Files named by message id. One thread writes, one reads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._unfinished: dict[int, int] = {}
        directory.mkdir(mode=0o700, exist_ok=True)

    def append(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        for message_id, piece in pieces:
            handle = self._unfinished.get(message_id)
            if handle is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                handle = self._unfinished[message_id] = os.open(self._path(message_id), flags, 0o600)
            view = memoryview(piece)
            while view:
                view = view[os.write(handle, view) :]

    def seal(self, message_ids: Collection[int]) -> None:
        """Bring complete bodies to the disk, and then their names."""
        for message_id in message_ids:
            handle = self._unfinished.pop(message_id)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        if message_ids:
            sync_directory(self._directory)

    def finish(self, message_ids: Iterable[int]) -> None:
        """Complete, and of no use after a restart."""
        for message_id in message_ids:
            os.close(self._unfinished.pop(message_id))

    def unlink(self, message_ids: Iterable[int]) -> None:
        for message_id in message_ids:
            handle = self._unfinished.pop(message_id, None)
            if handle is not None:
                os.close(handle)
            self._path(message_id).unlink(missing_ok=True)

    def unlink_all_but(self, message_ids: Collection[int]) -> None:
        """After a crash: files whose row was never written, or is gone."""
        for path in self._directory.iterdir():
            if not (path.name.isdecimal() and int(path.name) in message_ids):
                path.unlink()

    def missing(self, sizes_bytes: dict[int, int]) -> list[int]:
        """Those that are not here in full: a promise broken by somebody else."""
        return [message_id for message_id, size in sizes_bytes.items() if self._size_bytes(message_id) != size]

    def read(self, message_id: int, offset: int, size_bytes: int) -> bytes:
        """Raises FileNotFoundError, or DamagedBody for a file that ends before."""
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

    def _size_bytes(self, message_id: int) -> int | None:
        try:
            return self._path(message_id).stat().st_size
        except FileNotFoundError:
            return None

    def _path(self, message_id: int) -> Path:
        return self._directory / str(message_id)


def sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
