"""An edge router loses its active uplink, through sockets and under traffic: it crashes, or falls silent."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED
from wire.message import decode

TOPOLOGY = """
mesh: edges
hello_interval_s: 0.2
hello_max_age_s: 1.0
routers:
  r1: {connect: [r2, r3]}
  r2: {connect: [r3]}
  r3:
  e1: {mode: edge, connect: [r1, r2]}
  e2: {mode: edge, connect: [r3]}
brokers:
  b1: {routers: [r3]}
addresses:
  again.#: {type: anycast, retransmit: true}
  prices: multicast
  orders: queue
"""
MOST_OUTAGE_S = {signal.SIGKILL: 1.0, signal.SIGSTOP: 3.0}
BEFORE, AFTER = 200, 400
UNDER_WAY = 20


@pytest.fixture
def mesh(tmp_path: Path):
    with ExitStack() as stack:
        running = RunningMesh(TOPOLOGY, tmp_path)
        stack.callback(running.down)
        yield running


class Traffic:
    """Numbered messages from one router to another, some under way at any time."""

    def __init__(self, mesh: RunningMesh, address: str, producer: str, consumer: str) -> None:
        self.consumer = WireClient(mesh.port(consumer), container_id=f"c-{address}")
        self.receiver = self.consumer.receiver(address, credit=1000)
        self.producer = WireClient(mesh.port(producer), container_id=f"p-{address}")
        self.sender = self.producer.sender(address)
        self.numbers: list[int] = []
        self.seen: list[int] = []
        self.gaps: list[float] = []
        self._last = time.monotonic()
        self.is_over = False

    def step(self) -> None:
        if not self.is_over and self.sender.credit > 0 and len(self.numbers) - len(self.producer.outcomes) < UNDER_WAY:
            self.numbers.append(self.producer.send(self.sender, len(self.numbers)))
        for client in (self.producer, self.consumer):
            client.step(0.0005)
        came = self.consumer.settle_all()
        if came:
            self.receiver.grant(len(came))
            now = time.monotonic()
            self.gaps.append(now - self._last)
            self._last = now
        self.seen += [decode(each.data).body for each in came]

    def run_until(self, condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
        end = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < end, f"{what}: not within {timeout_s} s, {len(self.seen)} came"
            self.step()

    def end(self) -> None:
        for client in (self.producer, self.consumer):
            client.kill()


def active_uplink(mesh: RunningMesh) -> str | None:
    found = mesh.snapshot("e1")
    return found["node"]["active_uplink"] if found is not None else None


@pytest.mark.quiet
@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["kill", "stop"])
@pytest.mark.parametrize(("producer", "consumer"), [("e1", "e2"), ("e2", "e1")])
def test_nothing_is_lost_when_the_active_uplink_is(mesh, producer: str, consumer: str, fault: signal.Signals):
    active = active_uplink(mesh)
    assert active is not None
    pid = mesh.pid(active)
    traffic = Traffic(mesh, "again.x", producer, consumer)
    try:
        traffic.run_until(lambda: len(traffic.seen) >= BEFORE, "before")
        traffic.gaps.clear()
        os.kill(pid, fault)
        known = len(traffic.numbers)
        traffic.run_until(lambda: len(traffic.numbers) >= known + AFTER, "after")
        traffic.is_over = True
        traffic.run_until(lambda: len(traffic.producer.outcomes) == len(traffic.numbers), "outcomes")
        traffic.run_until(lambda: set(traffic.seen) == set(range(len(traffic.numbers))), "the last")
        outage_s = max(traffic.gaps)
        sys.stdout.write(f"outage {producer} to {consumer}, {fault.name}: {outage_s * 1000:.0f} ms\n")
        assert all(traffic.producer.outcomes[number] == ACCEPTED for number in traffic.numbers)
        assert outage_s < MOST_OUTAGE_S[fault]
        assert active_uplink(mesh) in {"r1", "r2"} - {active}
    finally:
        if fault is signal.SIGSTOP:
            os.kill(pid, signal.SIGCONT)
        traffic.end()


def test_queue_clients_keep_their_links_and_dynamic_addresses_their_name(mesh):
    with (
        WireClient(mesh.port("e1"), container_id="one") as client,
        WireClient(mesh.port("e2"), container_id="two") as far,
    ):
        orders = client.sender("orders")
        assert client.wait_outcome(client.send_when_due(orders)) == ACCEPTED
        replies = client.receiver(None, is_dynamic=True, credit=10)
        address = replies.remote_source.address
        answers = far.sender(address)
        assert wait_with([client, far], lambda: answers.credit > 0, "credit") is None
        active = active_uplink(mesh)
        assert active is not None
        mesh.kill(active)
        wait_until(lambda: active_uplink(mesh) in {"r1", "r2"} - {active}, 30.0, "the next uplink")
        number = far.send_when_due(answers, "late")
        wait_with([client, far], lambda: bool(client.arrived), "the reply")
        client.settle_all()
        assert far.wait_outcome(number) == ACCEPTED
        assert client.wait_outcome(client.send_when_due(orders)) == ACCEPTED
        assert orders.is_open
