"""The broker's disk in asyncio: one thread that commits, one that reads, so that neither waits for the other's sync.

Threads here sit in system calls nearly all the time; what they do in Python is short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from broker.node import BrokerNode
from broker.store.batch import Store


class Disk:
    """Carries batches and fetches between ``node`` and ``store``; ``wake`` is called after what came back.

    Its tasks end only with an error, or with ``finish``.
    """

    def __init__(self, node: BrokerNode, store: Store, clock: Callable[[], float], wake: Callable[[], None]) -> None:
        self._node = node
        self._store = store
        self._clock = clock
        self._wake = wake
        self._has_writes = asyncio.Event()
        self._has_reads = asyncio.Event()
        self._is_finishing = False
        self._committing = asyncio.create_task(self._commit_batches())
        self._reading = asyncio.create_task(self._read_bodies())

    def serve(self) -> None:
        """The node may want something. Call it after each input."""
        self._has_writes.set()
        self._has_reads.set()

    async def wait_failed(self) -> None:
        """Raise what ended a task: StoreError when the disk refused, and nothing can be promised any more."""
        done, _ = await asyncio.wait((self._committing, self._reading), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def finish(self) -> None:
        """Commit all that is left, the closing marks included. Raises StoreError."""
        self._reading.cancel()
        self._node.close()
        self._is_finishing = True
        self._has_writes.set()
        await self._committing

    async def abandon(self) -> None:
        """The store failed: nothing more is written or read."""
        self._committing.cancel()
        self._reading.cancel()
        await asyncio.gather(self._committing, self._reading, return_exceptions=True)

    async def _commit_batches(self) -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "store-writer") as writer:
            while True:
                batch = self._node.take_batch()
                if batch is not None:
                    if not batch.is_empty:
                        await loop.run_in_executor(writer, self._store.commit, batch)
                    self._node.on_committed(self._clock())
                    self._wake()
                elif self._is_finishing:
                    return
                else:
                    self._has_writes.clear()
                    await self._has_writes.wait()

    async def _read_bodies(self) -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "store-reader") as reader:
            while True:
                await self._has_reads.wait()
                self._has_reads.clear()
                fetches = self._node.take_fetches()
                if fetches:
                    ranges = [fetch.wanted for fetch in fetches]
                    bodies = await loop.run_in_executor(reader, self._store.read, ranges)
                    self._node.on_fetched(fetches, bodies, self._clock())
                    self._wake()
