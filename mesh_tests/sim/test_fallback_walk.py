"""Random lives of an address with a fallback, by seed: its consumer comes and goes under traffic; then faults come too.

What must hold after every step: `invariants`. At the end: every delivery has an outcome, and what was accepted was
taken. Without faults also: each producer's messages were seen in the order in which it sent them. A seed that failed
once stays in the list.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.seeds import seeds
from mesh_tests.sim.invariants import CheckedMesh
from mesh_tests.sim.test_fallback import body, is_falling_back, mesh_of, text_of
from wire.delivery import ACCEPTED

SEEDS = seeds(12, 101_183)
RING: dict[str, Any] = {
    "r1": {"connect": ["r2", {"to": "r4", "cost": 3}]},
    "r2": {"connect": ["r3"]},
    "r3": {"connect": ["r4"]},
    "r4": {},
}


WITH_EDGES: dict[str, Any] = {
    **RING,
    "e1": {"mode": "edge", "connect": ["r1", "r2"]},
    "e2": {"mode": "edge", "connect": ["r1", "r3"]},
}


class Walk:
    """Producers at several routers, one consumer at a time, always at ``egress``."""

    ROUTERS = RING

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        keepers = self.random.sample(sorted(RING), self.random.randint(1, 2))
        self.sent: dict[SimSender, dict[int, str]] = {}
        self.mesh: SimMesh = mesh_of(folder, keepers, self.ROUTERS, partial(CheckedMesh, self))
        self.egress = self.random.choice(sorted(self.ROUTERS))
        self.producers: list[tuple[str, SimClient, SimSender]] = []
        self.seen: list[bytes] = []
        self.consumer: tuple[SimClient, SimReceiver] | None = None
        self._count = 0

    def run(self, steps: int, acts: list[tuple[int, Callable[[], None]]]) -> None:
        for _ in range(3):
            self.add_producer()
        for _ in range(steps):
            self.random.choices([act for _, act in acts], [weight for weight, _ in acts])[0]()
            self.mesh.run(self.random.choice((0.0005, 0.002, 0.01, 0.05, 0.3)))

    # Producers
    def add_producer(self) -> None:
        router = self.random.choice(sorted(self.mesh.routers))
        name = f"p{len(self.producers)}"
        client = self.mesh.client(router, name)
        sender = client.sender("rpc")
        self.producers.append((name, client, sender))
        self.sent[sender] = {}

    def send(self) -> None:
        name, client, sender = self.random.choice(self.producers)
        for _ in range(self.random.randint(1, 10)):
            if client.closed or not sender.link.is_open or sender.link.credit <= 0:
                return
            text = f"{name}:{len(self.sent[sender]) + 1}"
            self.sent[sender][sender.send(body(text))] = text

    # The consumer
    def attach(self) -> None:
        if self.consumer is None and self.egress in self.mesh.routers:
            self._count += 1
            client = self.mesh.client(self.egress, f"c{self._count}")
            self.consumer = client, client.receiver("rpc", credit=self.random.choice((1, 5, 50)))

    def leave(self) -> None:
        """Take back its credit, settle all, go."""
        if self.consumer is not None:
            client, receiver = self.consumer
            receiver.tops_up = False
            if receiver.link.is_open and not client.closed:
                receiver.link.set_credit(0)
                client.endpoint.mark_dirty()
            self.mesh.run(0.05)
            self._end(cut=False)

    def vanish(self) -> None:
        """Its connection is lost, with all that it was sent."""
        self._end(cut=True)

    def _end(self, *, cut: bool) -> None:
        if self.consumer is None:
            return
        client, receiver = self.consumer
        self.consumer = None
        if cut or client.closed:
            self.mesh.cut(client.pipe)
        else:
            receiver.link.close()
        self.mesh.flush()
        self.seen += receiver.messages

    # Faults
    def kill_router(self) -> None:
        if len(self.mesh.routers) == len(self.ROUTERS):
            name = self.random.choice(sorted(self.ROUTERS))
            self.mesh.trunks = {pair: pipe for pair, pipe in self.mesh.trunks.items() if name not in pair}
            self.mesh.kill(name)

    def cut_trunk(self) -> None:
        if self.mesh.trunks:
            self.mesh.cut_trunk(*self.random.choice(sorted(map(sorted, self.mesh.trunks))))

    def kill_broker(self) -> None:
        if self.mesh.brokers:
            self.mesh.kill_broker("b1")

    def heal(self) -> None:
        mesh = self.mesh
        for name in sorted(self.ROUTERS):
            if name not in mesh.routers:
                mesh.start(name)
        for edge in mesh.topology.edges():
            if frozenset({edge.dialer, edge.to}) not in mesh.trunks:
                mesh.link(edge.dialer, edge.to)
        if not mesh.brokers:
            mesh.start_broker("b1")

    # The end
    def finish(self) -> None:
        self.heal()
        self.vanish() if self.consumer and self.consumer[0].closed else self.leave()
        self.mesh.run(5)
        self.attach()
        self.mesh.run_until(lambda: not self.unanswered(), 30)
        self.mesh.run_until(lambda: not any(is_falling_back(self.mesh, router) for router in self.mesh.routers), 30)
        self.leave()

    def unanswered(self) -> list[str]:
        return [
            self.sent[sender][number]
            for _, client, sender in self.producers
            if not client.closed and sender.link.is_open
            for number in sender.open.values()
        ]

    # For the invariants
    def name_in(self, message: bytes) -> str:
        return text_of(message)

    def name_of(self, sender: SimSender, count: int) -> str:
        return self.sent[sender][count]

    def sent_as(self, name: str) -> tuple[str, bytes]:
        return "rpc", body(name)

    def accepted(self, sender: SimSender) -> list[str]:
        return [text for number, text in self.sent[sender].items() if sender.outcomes.get(number) == ACCEPTED]

    def first_sights(self, name: str) -> list[str]:
        texts = map(text_of, self.seen)
        return list(dict.fromkeys(text for text in texts if text.startswith(f"{name}:")))


class EdgeWalk(Walk):
    ROUTERS = WITH_EDGES


@pytest.mark.parametrize("kind", [Walk, EdgeWalk])
@pytest.mark.parametrize("seed", SEEDS)
def test_while_the_consumer_comes_and_goes_each_producer_is_in_order_and_nothing_is_lost(
    tmp_path: Path, seed: int, kind: type[Walk]
):
    walk = kind(seed, tmp_path)
    walk.run(300, [(30, walk.send), (3, walk.attach), (3, walk.leave), (1, walk.add_producer)])
    walk.finish()
    for name, _, sender in walk.producers:
        sights = walk.first_sights(name)
        assert sights == sorted(sights, key=lambda text: int(text.partition(":")[2]))
        assert set(walk.accepted(sender)) <= set(sights)


@pytest.mark.parametrize("kind", [Walk, EdgeWalk])
@pytest.mark.parametrize("seed", SEEDS)
def test_after_any_faults_every_delivery_is_answered_and_no_accepted_one_is_lost(
    tmp_path: Path, seed: int, kind: type[Walk]
):
    walk = kind(seed, tmp_path)
    acts: list[tuple[int, Callable[[], None]]] = [
        (60, walk.send),
        (6, walk.attach),
        (3, walk.leave),
        (3, walk.vanish),
        (2, walk.add_producer),
        (1, walk.kill_router),
        (1, walk.kill_broker),
        (2, walk.cut_trunk),
        (5, walk.heal),
    ]
    walk.run(300, acts)
    walk.finish()
    for name, _, sender in walk.producers:
        missing = set(walk.accepted(sender)) - set(walk.first_sights(name))
        assert not missing
