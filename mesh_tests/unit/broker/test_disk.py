"""Between the loop and the store's threads: is all that the node wants carried out, and every failure heard of?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest

import broker.disk
from broker.disk import LOOK_WHILE_WRITING_S, WRITER_SLICE_US, Disk
from broker.store.batch import StoreError, WriteBatch
from broker.time_slice import slice_us
from mesh.deploy.polling import wait_until

SOON_S = 5.0


class Node:
    """Wants what the test says."""

    def __init__(self) -> None:
        self.batches: list[WriteBatch] = []
        self.fetches: list[Any] = []
        self.committed = 0
        self.bodies: list[bytes] = []
        self.at_close: list[WriteBatch] = []
        self.bug: Exception | None = None
        self.seen: list[object] = []
        """Spaces, and how many commits there had been before each."""

    def on_space(self, space: object, now: float) -> None:
        self.seen.append((space, self.committed))

    def take_batch(self) -> WriteBatch | None:
        return self.batches.pop(0) if self.batches else None

    def on_committed(self, now: float) -> None:
        if self.bug is not None:
            raise self.bug
        self.committed += 1

    def take_fetches(self) -> list[Any]:
        fetches, self.fetches = self.fetches, []
        return fetches

    def on_fetched(self, fetches: Sequence[Any], bodies: Sequence[bytes], now: float) -> None:
        self.bodies += bodies

    def close(self) -> None:
        self.batches += self.at_close


class Fetch:
    wanted = "wanted"


class Store:
    def __init__(self) -> None:
        self.written: list[WriteBatch] = []
        self.error: Exception | None = None
        self.slice_us: int | None = None

    def commit(self, batch: WriteBatch) -> None:
        self.slice_us = slice_us()
        if self.error is not None:
            raise self.error
        self.written.append(batch)

    def look(self) -> str:
        if self.error is not None:
            raise self.error
        return "a look"

    def read(self, ranges: Sequence[str]) -> list[bytes]:
        return [wanted.encode() for wanted in ranges]


def batch() -> WriteBatch:
    return WriteBatch(dropped_messages=[1])


def with_disk(test: Callable[[Node, Store, Disk], Any], clock: Callable[[], float] = lambda: 0.0) -> None:
    async def run() -> None:
        node, store = Node(), Store()
        disk = Disk(node, store, clock, lambda: disk.serve())  # type: ignore[arg-type]
        async with asyncio.timeout(SOON_S):
            await test(node, store, disk)

    asyncio.run(run())


async def until(holds: Callable[[], object]) -> None:
    async def does() -> bool:
        return bool(holds())

    await wait_until(does)


@pytest.mark.parametrize("wanted", ["a fetch", "a commit"])
def test_what_the_flush_after_an_input_makes_the_node_want_is_carried_out(wanted: str) -> None:
    async def test(node: Node, store: Store, disk: Disk) -> None:
        disk.serve()
        if wanted == "a fetch":
            node.fetches.append(Fetch())
        else:
            node.batches.append(batch())
        await until(lambda: node.bodies == [b"wanted"] or node.committed == 1)
        await disk.finish()

    with_disk(test)


def test_promises_without_anything_to_write_are_kept_without_the_disk() -> None:
    async def test(node: Node, store: Store, disk: Disk) -> None:
        node.batches += [WriteBatch(), batch(), WriteBatch()]
        disk.serve()
        await until(lambda: node.committed == 3)
        assert store.written == [batch()]
        await disk.finish()

    with_disk(test)


@pytest.mark.skipif(slice_us() == 0, reason="Linux tells of slices from 6.12")
def test_the_thread_that_commits_is_served_before_those_who_wait_for_it() -> None:
    async def test(node: Node, store: Store, disk: Disk) -> None:
        before_us = slice_us()
        node.batches.append(batch())
        await disk.finish()
        assert (store.slice_us, slice_us()) == (WRITER_SLICE_US, before_us)

    with_disk(test)


def test_what_is_left_at_the_end_is_committed() -> None:
    async def test(node: Node, store: Store, disk: Disk) -> None:
        node.batches.append(batch())
        node.at_close += [batch(), WriteBatch(), batch()]
        await disk.finish()
        assert (len(store.written), node.committed) == (3, 4)

    with_disk(test)


@pytest.mark.parametrize("what", [batch(), WriteBatch()], ids=["written", "promises only"])
def test_a_node_that_cannot_take_its_commit_ends(what: WriteBatch) -> None:
    async def test(node: Node, store: Store, disk: Disk) -> None:
        node.bug = ValueError("a bug")
        node.batches.append(what)
        disk.serve()
        with pytest.raises(ValueError, match="a bug"):
            await disk.wait_failed()
        disk.abandon()

    with_disk(test)


@pytest.mark.parametrize("when", ["running", "at the end"])
def test_what_the_store_refuses_is_heard_of(when: str) -> None:
    async def test(node: Node, store: Store, disk: Disk) -> None:
        store.error = StoreError("full")
        node.batches.append(batch())
        if when == "running":
            disk.serve()
        with pytest.raises(StoreError, match="full"):
            await (disk.wait_failed() if when == "running" else disk.finish())
        disk.abandon()

    with_disk(test)


def test_it_looks_how_much_room_is_left_now_and_then_while_it_writes_before_producers_get_credit() -> None:
    now = count(0.0, LOOK_WHILE_WRITING_S * 0.4)

    async def test(node: Node, store: Store, disk: Disk) -> None:
        for number in range(1, 9):
            node.batches.append(batch())
            disk.serve()
            await until(lambda number=number: node.committed == number)
        assert 2 <= len(node.seen) <= 7, "not after each"
        assert all(committed < 8 for _, committed in node.seen)
        await disk.finish()

    with_disk(test, lambda: next(now))


def test_it_looks_how_much_room_is_left_while_nothing_is_written_and_not_after_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker.disk, "LOOK_WHILE_IDLE_S", 0.01)

    async def test(node: Node, store: Store, disk: Disk) -> None:
        loop, faults = asyncio.get_running_loop(), []
        loop.set_exception_handler(lambda _, fault: faults.append(fault))
        await until(lambda: len(node.seen) >= 3)
        await disk.finish()
        count_at_end, later = len(node.seen), loop.time() + 3 * broker.disk.LOOK_WHILE_IDLE_S
        await until(lambda: loop.time() > later)
        assert (len(node.seen), faults) == (count_at_end, [])

    with_disk(test)


def test_a_disk_that_cannot_be_looked_at_ends_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker.disk, "LOOK_WHILE_IDLE_S", 0.001)

    async def test(node: Node, store: Store, disk: Disk) -> None:
        store.error = StoreError("it is gone")
        with pytest.raises(StoreError, match="it is gone"):
            await disk.wait_failed()
        disk.abandon()

    with_disk(test)
