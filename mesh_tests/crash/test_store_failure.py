"""The disk refuses: nothing more is promised, peers are told, and the process ends with one line that says why."""

import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import broker.run
from addressing.topology.model import Topology
from broker.store.batch import StoreError, WriteBatch
from broker.store.sqlite import SqliteStore
from mesh.client.client import Client
from mesh.client.connect import connected
from mesh.client.errors import Unreachable
from mesh.client.server import Server
from mesh_tests.crash.broker_process import BrokerProcess
from mesh_tests.crash.ledger import Ledger
from mesh_tests.crash.small_disk import SmallDisk, tmpfs
from mesh_tests.crash.traffic import Traffic
from mesh_tests.ports import free_port
from wire.message import Message, encode
from wire.node_files import NodeFiles


class RefusingStore(SqliteStore):
    """Takes queues, but no message."""

    def commit(self, batch: WriteBatch) -> None:
        if batch.messages:
            raise StoreError("the disk is full")
        super().commit(batch)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    monkeypatch.setattr(broker.run, "SqliteStore", RefusingStore)
    yield
    sys.setswitchinterval(interval_s)


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("address", ["orders", "_amqpmesh/broker/b1/probe"])
def test_what_the_store_refused_is_not_accepted_and_every_peer_is_told(tmp_path: Path, address: str) -> None:
    asyncio.run(_send_to_a_broker_that_cannot_write(tmp_path, address))


async def _send_to_a_broker_that_cannot_write(directory: Path, address: str) -> None:
    port = free_port()
    topology = Topology.model_validate(
        {
            "mesh": "full",
            "node_tls": False,
            "routers": {"r1": {}},
            "brokers": {"b1": {"data": "unused", "port": port}},
            "addresses": {"orders": "queue"},
        }
    )
    files = NodeFiles(
        certificate=None, data=directory / "data", control_socket=directory / "b1.sock", rings=directory / "rings"
    )
    started = asyncio.Event()

    async def on_started(node: object) -> None:
        started.set()

    running = asyncio.create_task(
        broker.run.run_broker(topology, "b1", files, asyncio.Event(), on_started, log=lambda event: None)
    )
    await started.wait()
    server = Server("127.0.0.1", port)
    async with connected(server, 5.0) as producing, connected(server, 5.0) as watching:
        sender = await producing.sender(address)
        outcome = await sender.send(encode(Message("promised to nobody")))
        with pytest.raises(Unreachable):
            await outcome
        await watching.wait_for(lambda: watching.error is not None)
        assert _reason(producing) == _reason(watching)
        assert "amqp:internal-error: broker b1 cannot use its disk any more" in _reason(watching)
    with pytest.raises(StoreError, match="the disk is full"):
        await running


def _reason(client: Client) -> str:
    assert client.error is not None
    return client.error.message


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """4 MiB, of which the broker's own messages take all."""
    with tmpfs(tmp_path / "data", "4m") as made:
        yield made


@pytest.mark.timeout(60)
def test_without_a_watermark_a_full_disk_ends_the_broker_and_nothing_accepted_is_lost(
    tmp_path: Path, small_disk: SmallDisk
) -> None:
    chance, queue, topic, numbers = random.Random(1), Ledger(), Ledger(), count(1)
    process = BrokerProcess(tmp_path, disk_free_min_bytes=0)
    process.start()
    traffic = Traffic(process.port, chance, queue, topic, numbers)
    traffic.run(until=lambda: False)
    traffic.close()
    assert process.wait_exit() == 1
    assert traffic.closed_for is not None
    assert traffic.closed_for.condition == "amqp:internal-error"
    events = [json.loads(line) for line in process.log.read_text().splitlines() if line.startswith("{")]
    (failed,) = [event for event in events if event["level"] == "error"]
    assert failed["event"] == "node_failed"
    assert failed["reason"].startswith(f"cannot write to the store in {small_disk.directory}: ")
    assert "Traceback" not in process.log.read_text()

    small_disk.grow("64m")
    process.start()
    Traffic(process.port, chance, queue, topic, numbers).empty()
    assert process.stop() == 0
    assert queue.accepted or topic.accepted, "no load at all: the test shows nothing"
    queue.check(time.time())
    topic.check(time.time())
