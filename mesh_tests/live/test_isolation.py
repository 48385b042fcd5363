"""Do deliveries that nobody settles make others dearer, which share their connections? One to three routers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from statistics import median

import pytest

from mesh.bench.bench_connection import BenchConnection, BenchLink, run
from mesh.bench.consumer import BenchConsumer, HoldingConsumer
from mesh.bench.dial import BenchServer, Dialed, dial
from mesh.bench.handshake import LinkPlan
from mesh.bench.meter import Meter
from mesh.bench.performatives import SEND_UNSETTLED
from mesh.bench.producer import BenchProducer
from mesh_tests.egress import BETWEEN
from mesh_tests.running_mesh import RunningMesh

pytestmark = pytest.mark.alone

HELD = 1_000
FLOWING = 60_000
MOST = 1.10
ROUNDS = 9
STALL_S = 20.0

TOPOLOGY = """
mesh: isolation
node_tls: false
routers:
  r1: {connect: [r2], listeners: [{authentication: none, link_capacity: 1000}]}
  r2: {connect: [r3], listeners: [{authentication: none}]}
  r3: {listeners: [{authentication: none}]}
addresses: {work.#: anycast}
"""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    mesh = RunningMesh(TOPOLOGY, tmp_path_factory.mktemp("isolation"))
    yield mesh
    mesh.down()


def test_a_thousand_unsettled_deliveries_do_not_make_those_of_another_address_dearer(
    mesh: RunningMesh, egress: str, record_testsuite_property: Callable[[str, object], None]
):
    cost_us(mesh, egress, BenchConsumer)  # circuits are made, and memory is found
    ratios: list[float] = []
    # As many rounds whatever they say: going on until the median is low enough would find what is wanted. In a round
    # one kind follows the other, and each is first in turn: what else the machine does changes, and both see it.
    for round_ in range(ROUNDS):
        kinds = (BenchConsumer, HoldingConsumer)[:: -1 if round_ % 2 else 1]
        used_us = {kind: cost_us(mesh, egress, kind) for kind in kinds}
        ratios.append(used_us[HoldingConsumer] / used_us[BenchConsumer])
    record_testsuite_property(f"isolation over {BETWEEN[egress]}", f"{median(ratios):.3f}")
    assert median(ratios) <= MOST, f"a message costs so many times as much: {[f'{ratio:.3f}' for ratio in ratios]}"


def cost_us(mesh: RunningMesh, egress: str, kind: type[BenchConsumer]) -> float:
    """CPU of all routers on the way for a message that flows, while a ``kind`` of consumer has taken the others.

    The work is the same whichever that is, but for the settling of a thousand.
    """
    meter = Meter([mesh.pid(router) for router in BETWEEN if router <= egress])
    with closing(receiving(mesh, egress)) as taking, closing(sending(mesh, egress)) as giving:
        takers = [consumer_on(taking, 0, kind, HELD), consumer_on(taking, 1, BenchConsumer, FLOWING)]
        givers = [producer_on(giving, 0, HELD), producer_on(giving, 1, FLOWING)]
        givers[0].is_done = True  # when all have come, of which the consumer tells: they need not be settled
        carriers = [carrier_of(taking, takers), carrier_of(giving, givers)]
        before_s = sum(meter.cpu_s())
        assert run(carriers, STALL_S), f"{[each.received for each in takers]} came"
        used_s = sum(meter.cpu_s()) - before_s
        assert givers[0].settled == (0 if kind is HoldingConsumer else HELD)
    return used_s * 1e6 / FLOWING


def receiving(mesh: RunningMesh, egress: str) -> Dialed:
    links = [LinkPlan(address, True) for address in addresses(egress)]
    return dial(BenchServer("127.0.0.1", mesh.port(egress)), links)


def sending(mesh: RunningMesh, egress: str) -> Dialed:
    links = [LinkPlan(address, False, SEND_UNSETTLED) for address in addresses(egress)]
    return dial(BenchServer("127.0.0.1", mesh.port("r1")), links)


def addresses(egress: str) -> tuple[str, str]:
    """The address whose deliveries are held, and the address whose deliveries flow.

    Each egress has its own. Router r1 may hear a little later than this test that the consumers at another egress have
    left: until then r1 sends deliveries there, which come back RELEASED, and a producer of the bench sends none again.
    """
    return f"work.stuck.{egress}", f"work.flow.{egress}"


def consumer_on(dialed: Dialed, number: int, kind: type[BenchConsumer], count: int) -> BenchConsumer:
    attached = dialed.attached[number]
    counts = attached.next_incoming_id, attached.delivery_count
    return kind(attached.channel, attached.plan.what, *counts, run=number, count=count, body_bytes=100, window=HELD)


def producer_on(dialed: Dialed, number: int, count: int) -> BenchProducer:
    attached = dialed.attached[number]
    plan = {"run": number, "count": count, "body_bytes": 100, "frame_bytes": dialed.peer.frame_bytes}
    return BenchProducer(attached.channel, attached.plan.what, attached.remote_window, **plan)


def carrier_of(dialed: Dialed, links: list[BenchLink]) -> BenchConnection:
    carrier = dialed.carrier()
    for link, attached in zip(links, dialed.attached, strict=True):
        carrier.add(link, attached.peer_channel)
    carrier.feed(dialed.leftover)
    return carrier
