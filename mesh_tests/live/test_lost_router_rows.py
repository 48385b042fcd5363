"""What becomes of deliveries and links when a router is lost, through sockets? A mesh of its own loses one, once."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass

import pytest

from mesh_tests.live.wire_client import WireClient, wait_with
from wire.delivery import ACCEPTED, MODIFIED_FAILED, Kind

PATH_WAIT_S = 2.0
STREAM = 500

TOPOLOGY = """
mesh: ring
node_tls: false
routers:
  r1: {connect: [r2, r4]}
  r2: {connect: [r3]}
  r3: {connect: [r4]}
  r4:
brokers:
  b3: {routers: [r3]}
addresses:
  work.#: anycast
  queue: queue
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


# A router that is lost
@dataclass
class Loss:
    """Of r2: what a consumer there had, whether another got it; what a consumer of a broker at r3 got, and got again;
    outcomes of a stream that went through it to r3.
    """

    written: object
    got_by_another: int
    routed: list
    stream: Counter
    received: int


@pytest.fixture(scope="module")
def loss(mesh):
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
        routed = WireClient(mesh.port("r1"), container_id="routed")
        keeper, taking = routed.sender("queue"), routed.receiver("queue", credit=10)
        _send_routed(routed, keeper, "before")
        routed.wait_arrived(1)
        received, stream = _stream(mesh, producer, far)
        _send_routed(routed, keeper, "after")
        producer.wait(lambda: number in producer.outcomes, "the outcome of what the lost router had")
        other.step(PATH_WAIT_S)
        lost.kill()
        got = sorted(each.body for each in routed.wait_arrived(3))
        assert keeper.is_open
        assert taking.is_open
        routed.kill()
        return Loss(producer.outcomes[number], len(other.arrived), got, stream, received)


def _send_routed(client, link, body):
    client.wait(lambda: link.credit > 0, "credit")
    assert client.wait_outcome(client.send(link, body)) == ACCEPTED


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


def test_links_to_a_broker_go_on_over_another_path_and_what_was_held_comes_again(loss):
    assert loss.routed == ["after", "before", "before"]


def test_while_a_path_is_remade_deliveries_are_held_and_none_is_released(loss):
    assert set(loss.stream) <= {Kind.ACCEPTED, Kind.MODIFIED}
    assert loss.stream[Kind.ACCEPTED] > STREAM / 2
    assert loss.received >= loss.stream[Kind.ACCEPTED]
