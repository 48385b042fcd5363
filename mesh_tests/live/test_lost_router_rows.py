"""What becomes of deliveries and links when a router is lost, or a broker for good, through real sockets?

In a mesh of their own: nobody else's routers are killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import dataclass

import pytest

from mesh_tests.crash.broker_process import BrokerProcess
from mesh_tests.egress import BETWEEN
from mesh_tests.live.wire_client import WireClient, wait_with
from wire.delivery import ACCEPTED, MODIFIED_FAILED, Kind

PATH_WAIT_S = 2.0
REATTACH_S = 10.0
STREAM = 500

TOPOLOGY = """
mesh: ring
node_tls: false
routers:
  r1: {{connect: [r2, r4]}}
  r2: {{connect: [r3]}}
  r3: {{connect: [r4]}}
  r4:
brokers:
  x1: {{url: "amqp://127.0.0.1:{port}", routers: [r1]}}
  x2: {{url: "amqp://127.0.0.1:{port}", routers: [r2]}}
  x3: {{url: "amqp://127.0.0.1:{port}", routers: [r3]}}
addresses:
  work.#: anycast
  gone.r1: {{type: queue, broker: x1, broker_address: orders}}
  gone.r2: {{type: queue, broker: x2, broker_address: orders}}
  gone.r3: {{type: queue, broker: x3, broker_address: orders}}
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """One that nobody starts again."""
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def mesh(start_module_mesh, broker):
    return start_module_mesh(TOPOLOGY.format(port=broker.port))


# A broker that does not come back
@pytest.fixture(scope="module")
def forced(mesh, broker):
    """By the broker's router: after how many seconds a producer and a consumer were detached, and why."""
    with WireClient(mesh.port("r1"), container_id="client") as client:
        links = {router: (client.sender(f"gone.{router}"), client.receiver(f"gone.{router}")) for router in BETWEEN}
        flat = [link for pair in links.values() for link in pair]
        broker.kill()
        start = time.monotonic()
        when = {}

        def are_all_detached():
            for link in flat:
                if client.detached(link):
                    when.setdefault(link, time.monotonic() - start)
            return len(when) == len(flat)

        client.wait(are_all_detached, "all links to be detached", REATTACH_S + 5, outlasts_detach=True)
        return {router: [(when[link], client.detached(link)) for link in pair] for router, pair in links.items()}


def test_links_to_a_broker_that_does_not_come_back_are_kept_for_a_while_and_then_detached(forced, egress):
    for seconds, detached in forced[egress]:
        assert REATTACH_S - 1 < seconds < REATTACH_S + 3
        assert detached.error.condition == "amqp:link:detach-forced"
        assert not detached.closed


# A router that is lost
@dataclass
class Loss:
    """Of r2: what a consumer there had, whether another got it, and outcomes of a stream that went through it to r3."""

    written: object
    got_by_another: int
    stream: Counter
    received: int


@pytest.fixture(scope="module")
def loss(mesh, forced):
    with (
        WireClient(mesh.port("r1"), container_id="producer") as producer,
        WireClient(mesh.port("r1"), container_id="other") as other,
        WireClient(mesh.port("r3"), container_id="far") as far,
    ):
        lost = WireClient(mesh.port("r2"), container_id="lost")
        lost.receiver("work.lost", credit=1)
        sender = producer.sender("work.lost")
        producer.wait(lambda: sender.credit > 0, "credit")
        number = producer.send(sender, "x")
        producer.step()
        lost.wait_arrived(1)
        other.receiver("work.lost", credit=10)
        received, stream = _stream(mesh, producer, far)
        producer.wait(lambda: number in producer.outcomes, "the outcome of what the lost router had")
        other.step(PATH_WAIT_S)
        lost.kill()
        return Loss(producer.outcomes[number], len(other.arrived), stream, received)


def _stream(mesh, producer, far):
    """Kill r2 in the middle of it."""
    far.receiver("work.stream", credit=2 * STREAM)
    sender = producer.sender("work.stream")
    numbers, received = [], 0

    def go_on():
        nonlocal received
        if len(numbers) < STREAM and sender.credit > 0:
            numbers.append(producer.send(sender, len(numbers)))
            if len(numbers) == STREAM // 2:
                os.kill(mesh.pid("r2"), signal.SIGKILL)
        arrived, far.arrived = far.arrived, []
        received += len(arrived)
        for each in arrived:
            each.settle(ACCEPTED)
        return len(numbers) == STREAM and not any(map(producer.is_unsettled, numbers))

    wait_with((producer, far), go_on, "the end of the stream", 30)
    return received, Counter(producer.outcomes[number].kind for number in numbers)


def test_what_a_lost_router_had_is_in_doubt_and_not_sent_again(loss):
    assert loss.written == MODIFIED_FAILED
    assert loss.got_by_another == 0


def test_while_a_path_is_remade_deliveries_are_held_and_none_is_released(loss):
    assert set(loss.stream) <= {Kind.ACCEPTED, Kind.MODIFIED}
    assert loss.stream[Kind.ACCEPTED] > STREAM / 2
    assert loss.received >= loss.stream[Kind.ACCEPTED]
