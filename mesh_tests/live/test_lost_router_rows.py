"""What becomes of deliveries and links when a router is lost, through sockets? A mesh of its own loses one, once."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass, field

import pytest

from mesh_tests.live.wire_client import WireClient, wait_with
from wire.delivery import ACCEPTED, MODIFIED_FAILED, OutcomeCode
from wire.link import OutgoingLink
from wire.message import decode

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
  again: {type: anycast, retransmit: true}
  queue: queue
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


# A router that is lost
@dataclass
class Loss:
    """Of r2: what a consumer there had, whether another got it; what a consumer of a broker at r3 got, and got again;
    two streams that went through it to r3.
    """

    written: object
    got_by_another: int
    routed: list
    plain: Stream
    retransmitted: Stream


@dataclass
class Stream:
    """Of numbers from 0 on. ``seen``: how often each was sent before it was seen, each time that it was."""

    sender: OutgoingLink
    sent: list[int] = field(default_factory=list)
    outcomes: Counter = field(default_factory=Counter)
    seen: dict[int, list[int]] = field(default_factory=dict)


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
        streams = _stream(mesh, producer, far)
        _send_routed(routed, keeper, "after")
        producer.wait(lambda: number in producer.outcomes, "the outcome of what the lost router had")
        other.step(PATH_WAIT_S)
        lost.kill()
        got = sorted(each.body for each in routed.wait_arrived(3))
        assert keeper.is_open
        assert taking.is_open
        routed.kill()
        return Loss(producer.outcomes[number], len(other.arrived), got, *streams)


def _send_routed(client, link, body):
    client.wait(lambda: link.credit > 0, "credit")
    assert client.wait_outcome(client.send(link, body)) == ACCEPTED


def _stream(mesh, producer, far):
    """Kill r2 in the middle of it."""
    streams, killed = {}, []
    for address in ("work.stream", "again"):
        streams[far.receiver(address, credit=2 * STREAM)] = Stream(producer.sender(address))

    def go_on():
        for stream in streams.values():
            if len(stream.sent) < STREAM and stream.sender.credit > 0:
                stream.sent.append(producer.send(stream.sender, len(stream.sent)))
        if not killed and all(len(stream.sent) >= STREAM // 2 for stream in streams.values()):
            killed.append(mesh.pid("r2"))
            os.kill(*killed, signal.SIGKILL)
        arrived, far.arrived = far.arrived, []
        for each in arrived:
            message = decode(each.data)
            streams[each.link].seen.setdefault(message.body, []).append(message.delivery_count)
            each.settle(ACCEPTED)
        return all(
            len(stream.sent) == STREAM and not any(map(producer.is_unsettled, stream.sent))
            for stream in streams.values()
        )

    wait_with((producer, far), go_on, "the end of the streams", 30)
    for stream in streams.values():
        stream.outcomes.update(producer.outcomes[number].kind for number in stream.sent)
    return streams.values()


def test_what_a_lost_router_had_is_in_doubt_and_not_sent_again(loss):
    assert loss.written == MODIFIED_FAILED
    assert loss.got_by_another == 0


def test_links_to_a_broker_go_on_over_another_path_and_what_was_held_comes_again(loss):
    assert loss.routed == ["after", "before", "before"]


def test_while_a_path_is_remade_deliveries_are_held_and_none_is_released(loss):
    outcomes = loss.plain.outcomes
    assert set(outcomes) <= {OutcomeCode.ACCEPTED, OutcomeCode.MODIFIED}
    assert outcomes[OutcomeCode.ACCEPTED] > STREAM / 2
    assert len(loss.plain.seen) >= outcomes[OutcomeCode.ACCEPTED]


def test_where_the_address_says_so_what_a_lost_router_had_is_sent_again_and_all_is_accepted(loss):
    assert loss.retransmitted.outcomes == {OutcomeCode.ACCEPTED: STREAM}
    assert sorted(loss.retransmitted.seen) == list(range(STREAM))
    again = [counts for counts in loss.retransmitted.seen.values() if counts != [0]]
    assert again, "nothing was on its way over the router that was killed"
    assert all(counts in ([1], [0, 1]) for counts in again)
