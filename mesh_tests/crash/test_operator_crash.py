"""A broker that is killed at any point of what operators do to single messages: none is lost, none is there twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from addressing.topology.loader import load_topology
from addressing.topology.model import Topology
from broker.store.failpoints import StoreFailpoint
from broker.store.store_check import check
from mesh.client.connect import connected
from mesh.client.errors import MeshError
from mesh.deploy.operator import node_server
from mesh.operations.broker_control import ask_broker
from mesh_tests.crash.broker_process import BrokerProcess
from wire.message import Message, encode

CONNECT_S = 30.0
SMALL, LARGE = 300, 3
LARGE_BYTES = 100_000
QUEUES = ("orders", "dead")


class OperatorWork:
    """Random operations, and what each was about: ``doomed`` may be gone, ``gone`` has to be."""

    def __init__(self, topology: Topology, seed: int) -> None:
        self._topology = topology
        self._random = random.Random(seed)
        self.every = {f"{number}" for number in range(SMALL + LARGE)}
        self.doomed: set[str] = set()
        self.gone: set[str] = set()

    async def fill(self) -> None:
        async with connected(node_server(self._topology, "b1"), CONNECT_S) as client:
            sender = await client.sender("orders")
            for number in range(SMALL + LARGE):
                size = LARGE_BYTES if number < LARGE else 10
                await (await sender.send(encode(Message("x" * size, subject=f"{number}"))))
        await self.ask("create", address="dead")

    async def ask(self, op: str, **arguments: Any) -> list[Any]:
        return list(await ask_broker(self._topology, "b1", {"op": op, **arguments}))

    async def shown(self, address: str) -> dict[str, int]:
        """Numbers by subject, of all pages; each subject is there once."""
        found: list[tuple[str, int]] = []
        after = None
        while True:
            (page,) = await self.ask("browse", address=address, after=after)
            found += [(message["subject"], message["number"]) for message in page["messages"]]
            after = page["next"]
            if after is None:
                assert max(Counter(subject for subject, _ in found).values(), default=0) <= 1
                return dict(found)

    async def work_until_killed(self) -> None:
        """At most a hundred operations, which take about 1,000 of the store's commits."""
        for _ in range(100):
            try:
                await self._operate()
            except (MeshError, OSError):
                return

    async def _operate(self) -> None:
        source, target = self._random.sample(QUEUES, 2)
        shown = await self.shown(source)
        if not shown:
            return
        some = self._random.sample(sorted(shown), min(len(shown), self._random.randint(1, 120)))
        numbers = [shown[subject] for subject in some]
        match self._random.choice(["move", "move", "redrive", "up_to", "remove"]):
            case "move":
                await self.ask("move", source=source, target=target, numbers=numbers)
            case "redrive":
                await self.ask("redrive", address=source, to=target, numbers=numbers)
            case "up_to":
                await self.ask("move", source=source, target=target, up_to=numbers[0])
            case "remove":
                self.doomed |= set(some[:5])
                (answer,) = await self.ask("remove", address=source, numbers=numbers[:5])
                assert answer["messages"] == len(some[:5])
                self.gone |= set(some[:5])

    async def check(self) -> None:
        orders, dead = await self.shown("orders"), await self.shown("dead")
        assert not orders.keys() & dead.keys(), "moved, and there twice"
        assert not self.gone & (orders.keys() | dead.keys()), "removed, confirmed, and there again"
        assert self.every - self.doomed <= orders.keys() | dead.keys(), "lost"


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("failpoint", [StoreFailpoint.ROWS_WRITTEN, StoreFailpoint.ROWS_COMMITTED])
def test_no_message_is_lost_or_doubled_wherever_an_operation_is_cut(
    tmp_path: Path, failpoint: StoreFailpoint, seed: int
) -> None:
    process = BrokerProcess(tmp_path)
    process.start()
    try:
        topology = load_topology(tmp_path / "amqpmesh.yml")
        work = OperatorWork(topology, seed)
        asyncio.run(work.fill())
        kills = random.Random(seed)
        for _ in range(3):
            process.kill()
            process.start(crash_at=(failpoint, kills.randint(1, 12)))
            asyncio.run(work.work_until_killed())
            assert process.wait_exit() < 0, "it was not killed: this shows nothing"
            process.start()
            asyncio.run(work.check())
    finally:
        process.kill()
    assert check(process.data).findings == []
