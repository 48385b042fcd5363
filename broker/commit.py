"""What must be on disk before what may be said? Persist, then promise.

While one batch is being synced the next one collects: that is group commit, and its size follows the load by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.store.batch import WriteBatch
from wire.errors import LocalStateError

Promise = Callable[[float], None]
"""Kept, with the time, once everything written before it was made is on disk."""


class Commits:
    """Collects writes and promises.

    Always: a promise is kept after the commit of the batch that was open when it was made, in order
    Always: at most one batch is under way
    """

    def __init__(self) -> None:
        self.write = WriteBatch()
        """The open batch: add to it, before or after making the promise that needs it."""
        self.unsynced_bytes = 0
        self._promises: list[Promise] = []
        self._bytes = 0
        self._under_way: list[Promise] | None = None
        self._bytes_under_way = 0

    def promise(self, keep: Promise) -> None:
        self._promises.append(keep)

    def note_bytes(self, size_bytes: int) -> None:
        """Bodies in the open batch: what producers are held back by."""
        self._bytes += size_bytes
        self.unsynced_bytes += size_bytes

    def take(self) -> WriteBatch | None:
        """The open batch, to be committed now; None when one is under way or there is nothing to do."""
        if self._under_way is not None or (self.write.is_empty and not self._promises):
            return None
        batch, self.write = self.write, WriteBatch()
        self._under_way, self._promises = self._promises, []
        self._bytes_under_way, self._bytes = self._bytes, 0
        return batch

    def on_committed(self, now: float) -> None:
        if self._under_way is None:
            raise LocalStateError("no batch is under way")
        kept, self._under_way = self._under_way, None
        self.unsynced_bytes -= self._bytes_under_way
        self._bytes_under_way = 0
        for keep in kept:
            keep(now)
