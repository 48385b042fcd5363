"""A broker's disk in asyncio: one thread commits batches to the store and another reads, so no read waits for a sync.

These threads are in system calls nearly all the time and run little Python. A producer that waits for each accept waits
for each hop between threads, too: so a thread's result goes to the node directly, without an asyncio task between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from broker.node import BrokerNode
from broker.queueing.body_cache import Fetch
from broker.store.batch import Store, UnreadableBody, WriteBatch
from broker.store.space import Space
from broker.time_slice import ask_for_slice

A = TypeVar("A")
B = TypeVar("B")

LOOK_WHILE_WRITING_S = 0.05
"""The free space is measured this often during commits: a disk that writes 500 MB/s loses 25 MB of it meanwhile."""
LOOK_WHILE_IDLE_S = 1.0
"""The free space is measured this often without commits, since other processes fill the disk, too."""
WRITER_SLICE_US = 1000
"""The commit thread's time slice: short, to get a busy core soon, as all clients wait for commits
(docs/performance.md)."""


class Disk:
    """Carries the batches and fetches of a broker's node to the store, and the results back to the node.

    ``wake`` is called after each result that the node got. The commit thread also measures the free space, after a
    commit or once a second: if the disk is in trouble only this thread waits.

    Always: there is at most one commit and one read under way
    """

    def __init__(self, node: BrokerNode, store: Store, clock: Callable[[], float], wake: Callable[[], None]) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._writer = ThreadPoolExecutor(1, "store-writer", ask_for_slice, (WRITER_SLICE_US,))
        self._reader = ThreadPoolExecutor(1, "store-reader")
        self._is_committing = False
        self._is_reading = False
        self._is_finishing = False
        self._is_called = False
        self._landed = asyncio.Event()
        self._failed: asyncio.Future[None] = self._loop.create_future()
        self._looked_at = clock()
        self._next_look = self._loop.call_later(LOOK_WHILE_IDLE_S, self._look)

    def serve(self) -> None:
        """Have the commits and reads that the node wants started in the next turn of the event loop.

        Call after each input of the node.
        """
        # Commits do not start at once: the driver writes to sockets after an input of the node, which makes room in the
        # buffers of the sockets, and the node may then want more commits.
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon(self._serve_now)

    def _serve_now(self) -> None:
        self._is_called = False
        try:
            self._commit()
            self._read()
        except Exception as bug:  # noqa: BLE001 (a node that fails here cannot go on: the broker ends)
            self._fail(bug)

    async def wait_failed(self) -> None:
        """Wait until a commit, a read or the node fails, and raise the failure; no promise can be kept from then on.

        The failure is a StoreError if the store failed.
        """
        await asyncio.shield(self._failed)

    async def finish(self) -> None:
        """Close the node, commit all of its writes that are left, and end both threads.

        Raises the first failure, such as a StoreError.
        """
        self._is_finishing = True
        self._next_look.cancel()
        self._node.close()
        self._commit()
        while self._is_committing and not self._failed.done():
            self._landed.clear()
            await self._landed.wait()
            self._commit()
        self._end_threads()
        if self._failed.done():
            self._failed.result()

    def abandon(self) -> None:
        """End both threads after a failure of the store: no further commit or read is started."""
        self._is_finishing = self._is_committing = True
        self._next_look.cancel()
        self._end_threads()

    def _commit(self) -> None:
        while not self._is_committing and (batch := self._node.take_batch()) is not None:
            if batch.is_empty:
                # A batch without writes needs no commit: its promises are kept at once.
                self._node.on_committed(self._clock())
                self._wake()
            else:
                self._is_committing = True
                self._hand_over(self._writer, self._commit_and_look, batch, self._on_committed)

    def _commit_and_look(self, batch: WriteBatch) -> Space | None:
        """Commit the batch; return a new measure of the room on the disk.

        None if the last measure is less than LOOK_WHILE_WRITING_S old. Runs in the commit thread.
        """
        self._store.commit(batch)
        return self._store.look() if self._clock() >= self._looked_at + LOOK_WHILE_WRITING_S else None

    def _on_committed(self, space: Space | None) -> None:
        self._is_committing = False
        if space is not None:
            # The node learns of the disk's space before it keeps the promises of the commit, because these give
            # producers credit, and a full disk must stop them.
            self._on_space(space)
        self._node.on_committed(self._clock())
        self._wake()

    def _look(self) -> None:
        self._hand_over(self._writer, lambda _: self._store.look(), None, self._on_looked)

    def _on_looked(self, space: Space) -> None:
        if not self._is_finishing:
            self._next_look = self._loop.call_later(LOOK_WHILE_IDLE_S, self._look)
            self._on_space(space)
            self._wake()

    def _on_space(self, space: Space) -> None:
        now = self._looked_at = self._clock()
        self._node.on_space(space, now)

    def _read(self) -> None:
        if self._is_reading or self._is_finishing or not (fetches := self._node.take_fetches()):
            return
        self._is_reading = True
        ranges = [fetch.wanted for fetch in fetches]
        self._hand_over(self._reader, self._store.read, ranges, lambda bodies: self._on_read(fetches, bodies))

    def _on_read(self, fetches: list[Fetch], bodies: list[bytes | UnreadableBody]) -> None:
        self._is_reading = False
        if not self._is_finishing:
            self._node.on_fetched(fetches, bodies, self._clock())
            self._wake()

    def _hand_over(
        self, thread: ThreadPoolExecutor, work: Callable[[A], B], what: A, then: Callable[[B], None]
    ) -> None:
        def run() -> None:
            try:
                result = work(what)
            except Exception as error:  # noqa: BLE001 (raised again in wait_failed or finish)
                self._loop.call_soon_threadsafe(self._fail, error)
            else:
                self._loop.call_soon_threadsafe(self._land, then, result)

        thread.submit(run)

    def _land(self, then: Callable[[B], None], result: B) -> None:
        try:
            then(result)
        except Exception as bug:  # noqa: BLE001 (as in _serve_now)
            self._fail(bug)
        self._landed.set()

    def _fail(self, error: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)
        self._landed.set()

    def _end_threads(self) -> None:
        """End both threads, once their present work is done, so that the store can be closed."""
        self._writer.shutdown()
        self._reader.shutdown()
