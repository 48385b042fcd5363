"""Others fill the disk under load: producers wait, consumers go on until the queue is empty, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from broker.store.store_check import check
from mesh.client.client import Client
from mesh.client.connect import connected
from mesh.client.links import Sender
from mesh.client.server import Server
from mesh.deploy.polling import wait_until
from mesh_tests.crash import small_disk
from mesh_tests.crash.broker_process import BrokerProcess
from mesh_tests.crash.small_disk import SmallDisk
from wire.delivery import ACCEPTED
from wire.message import Message, decode, encode

BACKLOG = 3000
SMALL_BYTES, LARGE_BYTES = 8000, 200_000
LARGE_EVERY = 100
LEFT_BYTES = 2 << 20

pytestmark = pytest.mark.timeout(100)


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    with getattr(small_disk, request.param)(tmp_path / "data", "256M") as made:
        yield made


@pytest.fixture
def broker(tmp_path: Path, disk: SmallDisk) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path)
    process.start()
    yield process
    process.kill()


class Producer:
    """Sends as long as it has credit."""

    def __init__(self, client: Client, sender: Sender, numbers: Iterator[int]) -> None:
        self.accepted: set[int] = set()
        self._client = client
        self._sender = sender
        self._numbers = numbers
        self.task = asyncio.create_task(self._run())

    @property
    def waits(self) -> bool:
        return self._sender.credit == 0

    async def _run(self) -> None:
        for number in self._numbers:
            size = SMALL_BYTES if number % LARGE_EVERY else LARGE_BYTES
            outcome = await self._sender.send(encode(Message(body=bytes(size), message_id=number)))
            outcome.add_done_callback(lambda told, number=number: self._on_told(told, number))

    def _on_told(self, told: asyncio.Future[object], number: int) -> None:
        if not told.cancelled() and told.exception() is None and told.result() == ACCEPTED:
            self.accepted.add(number)

    async def end(self) -> None:
        """Once all that it has sent is settled."""
        self.task.cancel()
        await until(lambda: self._sender.unsettled == 0)
        assert self._client.error is None


@asynccontextmanager
async def producing(broker: BrokerProcess, numbers: Iterator[int]) -> AsyncIterator[Producer]:
    async with connected(Server("127.0.0.1", broker.port), 5.0) as client:
        yield Producer(client, await client.sender("orders"), numbers)


async def until(holds: Callable[[], object]) -> None:
    async def does() -> bool:
        return bool(holds())

    await wait_until(does)


async def drain(broker: BrokerProcess) -> list[int]:
    """All that the queue has, accepted; their numbers."""
    seen = []
    async with connected(Server("127.0.0.1", broker.port), 5.0) as client:
        receiver = await client.receiver("orders")
        while (received := await receiver.receive_until_empty()) is not None:
            seen.append(decode(received.data).message_id)
            receiver.settle(received, ACCEPTED)
    return seen


@pytest.mark.parametrize("how", ["to the watermark", "to the last byte"])
def test_producers_wait_on_a_disk_that_others_fill_and_the_queue_is_drained_to_empty(
    broker: BrokerProcess, disk: SmallDisk, how: str
) -> None:
    async def test() -> None:
        async with producing(broker, count()) as producer:
            await until(lambda: len(producer.accepted) >= BACKLOG)
            # Beside the load: the broker meets the end of the disk in the middle of it.
            await asyncio.to_thread(disk.fill if how == "to the last byte" else lambda: disk.fill_but(LEFT_BYTES))
            await until(lambda: broker.events("disk_low") and producer.waits)

            drained = await drain(broker)
            assert sorted(drained) == sorted(producer.accepted), "all that was accepted, once, and nothing was since"
            assert producer.waits
            assert not producer.task.done(), "blocked, and not failed"
            assert disk.free_bytes < broker.events("disk_low")[0]["wanted_bytes"]

            disk.make_room()
            await until(lambda: len(producer.accepted) > len(drained) + BACKLOG)
            await producer.end()
            drained += await drain(broker)
            assert sorted(drained) == sorted(producer.accepted)

    asyncio.run(test())
    assert broker.stop() == 0
    assert [len(broker.events(name)) for name in ("disk_low", "disk_fine", "node_failed")] == [1, 1, 0]
    assert "Traceback" not in broker.log.read_text()
    report = check(disk.directory)
    assert (report.findings, report.messages, report.leftovers) == ([], 0, 0)


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_broker_starts_on_a_disk_that_is_full_to_the_last_byte_and_is_drained_to_empty(
    broker: BrokerProcess, disk: SmallDisk, how: str
) -> None:
    numbers = count()

    async def load() -> set[int]:
        async with producing(broker, numbers) as producer:
            await until(lambda: len(producer.accepted) >= BACKLOG)
            await asyncio.to_thread(disk.fill_but, LEFT_BYTES)
            await until(lambda: producer.waits and broker.events("disk_low"))
            if how == "killed":
                broker.kill()
            else:
                assert await asyncio.to_thread(broker.stop) == 0
            return producer.accepted

    async def go_on(accepted: set[int]) -> None:
        assert set(await drain(broker)) >= accepted
        async with producing(broker, numbers) as producer:
            disk.make_room()
            await until(lambda: len(producer.accepted) > BACKLOG)
            await producer.end()
            assert sorted(await drain(broker)) == sorted(producer.accepted)

    accepted = asyncio.run(load())
    disk.fill()
    broker.start()
    asyncio.run(go_on(accepted))
    assert broker.stop() == 0
    assert "Traceback" not in broker.log.read_text()
