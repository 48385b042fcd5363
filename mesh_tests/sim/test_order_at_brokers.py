"""Do small and large messages of a producer come to a broker in the order in which it sent them, settled or not?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import broker.links.attachments
import broker.node
from broker.links.incoming import BrokerReceiver
from mesh.simulation.clients import SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_order import SETTLES, Settles
from router.forwarding import ties
from wire import delivery as deliveries
from wire.endpoint import Endpoint, EndpointSettings, Peer
from wire.link import RECEIVE_FIRST, RECEIVE_SECOND, SEND_MIXED

SMALL_BYTES = 3000
LARGE_BYTES = 300_000
ROUNDS = 6
SMALL_ONES = 8
"""In each round; then comes a large one."""
QUEUE = {"jobs": "jobs", "rpc": "kept"}


class WaitsForSettlement(BrokerReceiver):
    """As a receiver may that leaves the settlement to its sender. [2.6.12]"""

    def settle_accepted(self, delivery: int) -> int:
        deliveries.set_outcome(delivery, deliveries.ACCEPTED)
        self.link.endpoint.mark_dirty()
        return 0


@pytest.fixture(autouse=True)
def narrow_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a router wrote to a broker waits for the window of its session, and another session could overtake it."""

    def narrow(settings: EndpointSettings, peer: Peer, dirty: object) -> Endpoint:
        return Endpoint(replace(settings, window_frames=4, max_frame_bytes=512), peer, dirty)  # type: ignore[arg-type]

    monkeypatch.setattr(broker.node, "Endpoint", narrow)


@pytest.fixture(params=["r1", "r2", "r3"], ids=["1 router", "2 routers", "3 routers"])
def mesh(request: pytest.FixtureRequest, tmp_path: Path) -> SimMesh:
    """Producers are at r1. Of the brokers of a sharded queue only one is there: between two there is no order."""
    mesh = SimMesh(
        {
            "mesh": "ordered",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}},
            "brokers": {name: {"data": name, "routers": [request.param]} for name in ("b1", "b2")},
            "addresses": {
                "jobs": {"type": "queue", "brokers": ["b1", "b2"]},
                "kept": {"type": "queue", "broker": "b1"},
                "rpc": {"type": "anycast", "fallback": "kept"},
                "other": "anycast",
            },
        },
        tmp_path,
    )
    mesh.converge()
    mesh.kill_broker("b2")
    mesh.run(1.0)
    return mesh


def message_of(number: int, size: int) -> bytes:
    return b"\x00\x53\x75\xb0" + size.to_bytes(4) + f"{number:06}".encode().ljust(size, b"x")


def number_of(message: bytes) -> int:
    """A broker puts a header in front."""
    start = message.index(b"\x00\x53\x75\xb0") + 8
    return int(message[start : start + 6])


def send_large(mesh: SimMesh, sender: SimSender, number: int, *, settled: bool) -> None:
    """In two halves, so that it cannot be complete at the ingress."""
    message = message_of(number, LARGE_BYTES)
    delivery = sender.begin()
    sender.link.send(message[: LARGE_BYTES // 2])
    mesh.run(0.05 * (number % 2))
    sender.link.send(message[LARGE_BYTES // 2 :])
    sender.link.finish()
    if settled:
        del sender.open[delivery]
        deliveries.settle(delivery)
    mesh.flush()


def send_all(mesh: SimMesh, sender: SimSender, settles: Settles) -> int:
    numbers = iter(range(ROUNDS * (SMALL_ONES + 1)))
    for _ in range(ROUNDS):
        for _ in range(SMALL_ONES):
            number = next(numbers)
            sender.send(message_of(number, SMALL_BYTES), settled=settles(number))
        mesh.flush()
        number = next(numbers)
        send_large(mesh, sender, number, settled=settles(number))
    return number + 1


@pytest.mark.parametrize("settled", SETTLES)
@pytest.mark.parametrize("address", QUEUE)
def test_a_queue_has_small_and_large_messages_in_order(mesh: SimMesh, address: str, settled: str) -> None:
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > ROUNDS * (SMALL_ONES + 1))
    count = send_all(mesh, sender, SETTLES[settled])
    mesh.run(2.0)
    receiver = mesh.client("r2").receiver(QUEUE[address], credit=1000)
    mesh.run_until(lambda: len(receiver.messages) == count)
    assert [number_of(message) for message in receiver.messages] == list(range(count))
    assert set(sender.outcomes.values()) <= {deliveries.ACCEPTED}
    assert not sender.open


@pytest.mark.parametrize("address", QUEUE)
def test_what_follows_a_large_one_that_was_settled_before_its_outcome_comes_behind_it(
    mesh: SimMesh, address: str
) -> None:
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 2)
    send_large(mesh, sender, 0, settled=False)
    mesh.run_until(lambda: has_left(mesh, sender))
    (delivery,) = sender.open
    deliveries.settle(delivery)
    sender.send(message_of(1, SMALL_BYTES), settled=True)
    receiver = mesh.client("r2").receiver(QUEUE[address], credit=2)
    mesh.run_until(lambda: len(receiver.messages) == 2)
    assert [number_of(message) for message in receiver.messages] == [0, 1]


@pytest.mark.parametrize("settled", ["settled", "unsettled", "settled early"])
@pytest.mark.parametrize("mode", [RECEIVE_FIRST, RECEIVE_SECOND], ids=["first", "second"])
@pytest.mark.parametrize("address", QUEUE)
def test_a_broker_that_waits_for_a_settlement_gets_it(
    mesh: SimMesh, monkeypatch: pytest.MonkeyPatch, address: str, mode: int, settled: str
) -> None:
    monkeypatch.setattr(broker.links.attachments, "BrokerReceiver", WaitsForSettlement)
    ties_before = ties.count()
    sender = mesh.client("r1").sender(address, modes=(SEND_MIXED, mode))
    mesh.run_until(lambda: sender.link.credit > ROUNDS)
    for number in range(ROUNDS):
        count = sender.send(message_of(number, SMALL_BYTES), settled=settled == "settled")
        mesh.flush()
        if settled == "settled early":
            sender.settle(count)
    mesh.run(1.0)
    assert not sender.open
    assert ties.count() == ties_before


def has_left(mesh: SimMesh, sender: SimSender) -> bool:
    """All of it is in the engine of a connection to the broker, and not all of it at the broker."""
    to_broker = [endpoint for pipe in mesh.pipes for node, endpoint in pipe.ends if node in mesh.brokers.values()]
    arrived = sum(endpoint.bytes_in for endpoint in to_broker)
    assert not sender.outcomes, "the broker has it already"
    return LARGE_BYTES - 60_000 < arrived < LARGE_BYTES


@pytest.mark.parametrize("address", QUEUE)
def test_a_producer_that_waits_for_a_stuck_broker_stops_no_other_address(
    mesh: SimMesh, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """What comes behind a barrier lies in a session that circuits of other addresses use, too."""
    consumer = mesh.client("r3").receiver("other", credit=100)
    senders = [mesh.client("r1").sender(name) for name in (address, address, "other")]
    mesh.run_until(lambda: all(sender.link.credit > 0 for sender in senders))
    monkeypatch.setattr(mesh.brokers["b1"], "serve_disk", lambda: False)
    senders[0].send(message_of(0, SMALL_BYTES), settled=True)
    mesh.run(0.1)
    send_large(mesh, senders[0], 1, settled=True)
    mesh.run(0.1)
    for number in range(2, 150):
        if senders[1].link.credit > 0:
            senders[1].send(message_of(number, LARGE_BYTES // 5), settled=True)
        mesh.run(0.02)
    mesh.send(senders[2])
    mesh.run_until(lambda: bool(consumer.messages), 1.0)
