"""The complete spools, records from a ring, of one run of a node, which wait to become files of the link log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from linklogs.writer import spool
from linklogs.writer.events import FileWritten, SpoolPutAside, Tell
from linklogs.writer.failpoints import Passing, WriterFailpoint
from linklogs.writer.ring import DAMAGED, RingOwner

Store = Callable[[Path], Path | None]
"""Makes a file of the link log from a spool, and returns the file's path; see `store` in spool_storage.py."""


class SealedSpools:
    """A list of complete spools, the oldest first. A damaged spool is renamed to end with `.damaged`, and logged."""

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
        """Make a file from each spool, and delete the spool. After OSError, spools without a file stay in the list."""
        while self._paths:
            self._store_one(self._paths[0])
            del self._paths[0]

    def take_last(self) -> tuple[Path, spool.Content] | None:
        """Take the newest readable spool out of the list, so that a writer appends to it; None if there is none.

        Raises OSError.
        """
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
    """Return a slot number beyond every slot in the damaged spools of the node's run; 0 if no spool is damaged.

    A new spool counts from this number on, so that no two spools of a run have the same name.
    """
    aside = {path.with_suffix(""): path.stat().st_size for path in spools.glob(f"*{spool.SUFFIX}{DAMAGED}")}
    run = spool.run_name(owner)
    ends = [spool.first_of(path) + spool.most_slots(size) for path, size in aside.items() if spool.run_of(path) == run]
    return max(ends, default=0)
