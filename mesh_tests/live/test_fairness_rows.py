"""Do ten producers and ten consumers of very different speeds each get their part of one address? Through sockets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from mesh_tests.egress import BETWEEN
from mesh_tests.live.row_mesh import RowMesh
from mesh_tests.live.wire_client import WireClient
from wire.delivery import ACCEPTED

pytestmark = pytest.mark.quiet

SPEEDS_PER_S = (1, 2, 3, 5, 10, 15, 20, 30, 50, 100)
CREDIT = 20
SETTLE_S, MEASURE_S = 1.0, 4.0


class Consumer:
    """Accepts what is due at its speed, and grants one more for each."""

    def __init__(self, client: WireClient, address: str, speed_per_s: int) -> None:
        self.count = 0
        self.client = client
        self._link = client.receiver(address, credit=CREDIT)
        self._speed_per_s = speed_per_s
        self._free_at = time.monotonic()

    def move(self) -> None:
        self.client.step()
        if not self.client.arrived:
            self._free_at = max(self._free_at, time.monotonic())
        while self.client.arrived and self._free_at < time.monotonic():
            self.client.arrived.pop(0).settle(ACCEPTED)
            self._link.grant(1)
            self._free_at += 1 / self._speed_per_s
            self.count += 1


class Producer:
    """Always has more to send."""

    def __init__(self, client: WireClient, address: str) -> None:
        self.client = client
        self._link = client.sender(address)

    @property
    def count(self) -> int:
        """Of what was accepted."""
        return len(self.client.outcomes)

    def move(self) -> None:
        while self._link.credit > 0:
            self.client.send(self._link, "x")
        self.client.step()


@pytest.fixture
def clients(rows: RowMesh) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("ingresses", [["r1"], list(BETWEEN)], ids=["all at one router", "all over the line"])
def test_consumers_get_what_each_can_take_and_no_producer_starves(
    rows: RowMesh, clients: ExitStack, work: str, egress: str, ingresses: list[str]
):
    def client(router: str) -> WireClient:
        made = WireClient(rows.port(router))
        clients.callback(made.kill)
        return made

    consumers = [Consumer(client(egress), work, speed) for speed in SPEEDS_PER_S]
    producers = [Producer(client(ingresses[number % len(ingresses)]), work) for number in range(10)]
    sides: list[Consumer | Producer] = [*consumers, *producers]
    move_all(sides, SETTLE_S)
    before = [each.count for each in sides]
    seconds = move_all(sides, MEASURE_S)
    counts = [each.count - count for each, count in zip(sides, before, strict=True)]
    taken, sent = counts[: len(consumers)], counts[len(consumers) :]
    assert sum(taken) >= 0.9 * seconds * sum(SPEEDS_PER_S), taken
    for count, speed in zip(taken, SPEEDS_PER_S, strict=True):
        assert abs(count - seconds * speed) <= 2 + 0.1 * seconds * speed, taken
    assert min(sent) >= 0.5 * sum(sent) / len(sent), sent


def move_all(sides: list[Consumer | Producer], for_s: float) -> float:
    """How many seconds it took."""
    begun = time.monotonic()
    while time.monotonic() < begun + for_s:
        for each in sides:
            each.move()
        time.sleep(0.001)
    return time.monotonic() - begun
