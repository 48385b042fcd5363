"""Hostile dialogues at the ports of real processes: nothing dies, nothing grows, and a bystander's latencies stay.

The number of dialogues is FUZZ_COUNT of the environment, 1,000 by default; `make soak` asks for 20,000 of new seeds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

from mesh_tests.live.descriptors import descriptors_at_rest, wait_for_descriptors
from mesh_tests.live.memory import anonymous_bytes
from mesh_tests.live.wire_client import WireClient
from mesh_tests.running_mesh import RunningMesh
from wire.delivery import ACCEPTED

COUNT = int(os.environ.get("FUZZ_COUNT", "1000"))
FIRST = int(os.environ.get("LIFE_FIRST", "0")) * COUNT
ROUNDS = 5
RATE = 150.0
PACE_S = 0.01
MOST_TIMES = 1.2
MOST_GROWTH = 1.05
SETTLED_S = 30.0
pytestmark = [pytest.mark.alone, pytest.mark.timeout(120 + 2 * COUNT / RATE)]
NODES = ("r1", "r2", "e1", "b1")

TOPOLOGY = """
mesh: fuzz
node_tls: false
routers:
  r1: {connect: [r2], listeners: [{authentication: none}]}
  r2: {listeners: [{authentication: none}]}
  e1: {mode: edge, connect: [r1], listeners: [{authentication: none}]}
brokers:
  b1: {routers: [r1]}
addresses:
  work.#: anycast
  prices.#: multicast
  # What is stored takes memory: as much after 10,000 dialogues as after 20,000.
  orders.#: {type: queue, max_messages: 200, when_full: drop-oldest}
  news.#: {type: topic, subscription_expiry_s: 2, max_messages: 20}
  closed: unavailable
"""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    mesh = RunningMesh(TOPOLOGY, tmp_path_factory.mktemp("fuzz"))
    yield mesh
    mesh.down()  # which fails when there is a traceback in a log


class Bystander:
    """A producer at r1 and a consumer at r2, each in a thread; how long each message took until it was accepted."""

    def __init__(self, mesh: RunningMesh) -> None:
        self.took_s: list[float] = []
        self._sending, self._taking = WireClient(mesh.port("r1")), WireClient(mesh.port("r2"))
        self._is_over = threading.Event()
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._guarded, args=(run,)) for run in (self._take, self._send)]

    def __enter__(self) -> Bystander:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        for client in (self._sending, self._taking):
            client.kill()
        assert not self._errors, f"the bystander was hit: {self._errors[0]!r}"

    @property
    def p99_s(self) -> float:
        return quantiles(self.took_s, n=100)[98]

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - told to the thread of the test
            self._errors.append(error)

    def _take(self) -> None:
        receiver = self._taking.receiver("work.bystander", credit=10)
        while not self._is_over.is_set():
            self._taking.step(0.05)
            if self._taking.arrived:
                receiver.grant(1)
                self._taking.settle_all()
            assert not self._taking.has_ended

    def _send(self) -> None:
        sender = self._sending.sender("work.bystander")
        while not self._is_over.wait(PACE_S):
            self._sending.wait(lambda: sender.credit > 0, "credit")
            began = time.perf_counter()
            number = self._sending.send(sender, b"x" * 100)
            assert self._sending.wait_outcome(number) == ACCEPTED
            self.took_s.append(time.perf_counter() - began)


def hold(mesh: RunningMesh, first: int, count: int, *options: str) -> None:
    """Dialogues at every kind of port, from a process of their own."""
    ports = [f"{mesh.port(router)}:client" for router in ("r1", "r1", "e1")]
    # Not as routers: whoever may be one can lead messages astray, and is trusted by its certificate not to.
    ports += [f"{mesh.node_port(node)}:client" for node in ("b1", "r2")]
    command = [sys.executable, "-m", "mesh_tests.fuzz.peers", *ports, "--first", str(first), "--count", str(count)]
    subprocess.run([*command, "--rate", str(RATE), *options], check=True, cwd=Path(__file__).parents[2])


def test_hostile_peers_neither_kill_nor_fatten_a_node_nor_slow_a_bystander(mesh: RunningMesh) -> None:
    pids = {node: mesh.pid(node) for node in NODES}
    before = descriptors_at_rest(mesh, NODES)
    share = COUNT // ROUNDS
    p99_s: dict[bool, list[float]] = {True: [], False: []}
    most_s: dict[bool, list[float]] = {True: [], False: []}
    memory: list[dict[str, int]] = []
    for number in range(ROUNDS):
        for is_hostile in (False, True):
            with Bystander(mesh) as bystander:
                hold(mesh, FIRST + number * share, share, *([] if is_hostile else ["--well-formed"]))
            p99_s[is_hostile].append(bystander.p99_s)
            most_s[is_hostile].append(max(bystander.took_s))
        memory.append({node: anonymous_bytes(pid) for node, pid in pids.items()})
    assert {node: mesh.pid(node) for node in NODES} == pids
    wait_for_descriptors(mesh, before, SETTLED_S)
    half, whole = memory[len(memory) // 2], memory[-1]
    grown = {node: f"{half[node]:,} -> {whole[node]:,}" for node in NODES if whole[node] > MOST_GROWTH * half[node]}
    assert not grown, f"anonymous bytes after half of the dialogues, and after all: {grown}"
    told = f"ms, well-formed and hostile: p99 {told_ms(p99_s)}; largest {told_ms(most_s)}"
    # What the machine does besides shows in rounds without hostile peers, too: a median within these is not slower.
    for hostile_s, calm_s in ((p99_s[True], p99_s[False]), (most_s[True], most_s[False])):
        assert median(hostile_s) <= max(MOST_TIMES * median(calm_s), max(calm_s)), told


def told_ms(values: dict[bool, list[float]]) -> str:
    return " and ".join(str([round(1000 * value, 2) for value in values[key]]) for key in (False, True))
