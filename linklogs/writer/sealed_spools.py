"""The complete spools of one run, which wait to become files, the oldest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from linklogs.writer import spool
from linklogs.writer.events import FileWritten, SpoolPutAside, Tell
from linklogs.writer.failpoints import Passing, WriterFailpoint
from linklogs.writer.ring import DAMAGED, RingOwner

Store = Callable[[Path], Path | None]
"""Makes a file of a spool, and returns its path; spool_storage.py lists the errors."""


class SealedSpools:
    def __init__(self, paths: Sequence[Path], store: Store, tell: Tell, passing: Passing) -> None:
        self._paths = list(paths)
        self._store = store
        self._tell = tell
        self._passing = passing

    @property
    def is_empty(self) -> bool:
        return not self._paths

    def add(self, path: Path) -> None:
        self._paths.append(path)

    def store_all(self) -> None:
        """Turn all spools into files. Raises OSError; spools stored before the error are gone from here."""
        while self._paths:
            self._store_one(self._paths[0])
            del self._paths[0]

    def take_last(self) -> tuple[Path, spool.Content] | None:
        """Take the youngest readable spool, to go on with. Raises OSError."""
        while self._paths:
            path = self._paths[-1]
            try:
                content = spool.read(path)
            except spool.SpoolDamaged as error:
                self._put_aside(path, error)
                self._paths.pop()
            else:
                return self._paths.pop(), content
        return None

    def _store_one(self, path: Path) -> None:
        try:
            if not path.exists():
                raise spool.SpoolDamaged(f"{path}: expected a spool, the file is missing")
            stored = self._store(path)
        except spool.SpoolDamaged as error:
            self._put_aside(path, error)
            return
        path.unlink()
        self._passing(WriterFailpoint.SPOOL_DELETED)
        if stored is not None:
            self._tell(FileWritten(str(stored), stored.stat().st_size))

    def _put_aside(self, path: Path, error: Exception) -> None:
        with suppress(FileNotFoundError):
            path.rename(path.with_name(path.name + DAMAGED))
        self._tell(SpoolPutAside(str(error)))


def beyond_damaged(spools: Path, owner: RingOwner) -> int:
    """A number beyond every slot in a damaged spool of ``owner``; 0 if there is no damaged spool."""
    aside = {path.with_suffix(""): path.stat().st_size for path in spools.glob(f"*{spool.SUFFIX}{DAMAGED}")}
    run = spool.run_name(owner)
    ends = [spool.first_of(path) + spool.most_slots(size) for path, size in aside.items() if spool.run_of(path) == run]
    return max(ends, default=0)
