"""Does a producer that stops in the middle of a large message stop others that send to the same brokers?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.queueing.queue import QueueSnapshot
from mesh.simulation.clients import SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_fallback import body, text_of
from wire.delivery import ACCEPTED
from wire.errors import AmqpError

HALF = bytes(100_000)
ADDRESSES: dict[str, Any] = {
    "one": {"type": "queue", "broker": "b1"},
    "two": {"type": "queue", "brokers": ["b1", "b2"]},
    "rpc": {"type": "anycast", "fallback": "one"},
    "jobs": {"type": "anycast", "fallback": "two"},
}
QUEUE = {"one": "one", "two": "two", "rpc": "one", "jobs": "two"}
PREFIX = b"\x00\x53\x75\xb0\x00\x03\x0d\x40"  # of a message whose body is 200,000 bytes


@pytest.fixture(params=["r1", "r2"], ids=["1 router", "2 routers"])
def mesh(request: pytest.FixtureRequest, tmp_path: Path) -> SimMesh:
    """Producers are at r1, both brokers at r1 or r2."""
    mesh = SimMesh(
        {
            "mesh": "stalled",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
            "brokers": {name: {"data": name, "routers": [request.param]} for name in ("b1", "b2")},
            "addresses": ADDRESSES,
        },
        tmp_path,
    )
    mesh.converge()
    mesh.run_until(lambda: all(broker.is_up for node in mesh.routers.values() for broker in node.snapshot().brokers))
    mesh.run(0.2)
    return mesh


def stalled(mesh: SimMesh, address: str, name: str = "stalled") -> SimSender:
    """A producer that has sent half of a large message."""
    sender = mesh.client("r1", name).sender(address)
    begin_large(mesh, sender)
    mesh.run(0.2)
    return sender


def begin_large(mesh: SimMesh, sender: SimSender) -> None:
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.begin()
    sender.link.send(PREFIX + HALF)
    mesh.flush()


def finish_large(mesh: SimMesh, sender: SimSender) -> None:
    sender.link.send(HALF)
    sender.link.finish()
    mesh.flush()


def kept(mesh: SimMesh, address: str) -> list[QueueSnapshot]:
    """The shares of the queue."""
    queues = [each for broker in mesh.brokers.values() for each in broker.snapshot().queues]
    return [each.queue for each in queues if each.address == QUEUE[address]]


def stored(mesh: SimMesh, address: str) -> int:
    return sum(queue.enqueued_total for queue in kept(mesh, address))


def broker_links(mesh: SimMesh) -> list[Any]:
    ends = [end for pipe in mesh.pipes for end in pipe.ends if end[0] in mesh.brokers.values()]
    return [link for _, endpoint in ends for link in endpoint.links]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("router", ["r1", "r2"])
def test_others_go_on_beside_stalled_uploads(mesh: SimMesh, address: str, router: str):
    uploads = [stalled(mesh, address, f"stalled {n}") for n in range(3)]
    small, large = (mesh.client(router, name).sender(address) for name in ("small", "large"))
    for n in range(20):
        mesh.send(small, body(f"m{n}"))
    begin_large(mesh, large)
    finish_large(mesh, large)
    mesh.run_until(lambda: len(small.outcomes) == 20 and len(large.outcomes) == 1, 2.0)
    assert not any(upload.outcomes for upload in uploads)
    for upload in uploads:
        finish_large(mesh, upload)
    mesh.run_until(lambda: all(upload.outcomes for upload in uploads), 2.0)
    outcomes = [outcome for sender in [small, large, *uploads] for outcome in sender.outcomes.values()]
    assert outcomes == [ACCEPTED] * 24
    assert stored(mesh, address) == 24


@pytest.mark.parametrize("address", ["rpc", "jobs"])
def test_small_and_large_messages_of_a_producer_keep_their_order(mesh: SimMesh, address: str):
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 30)
    for n in range(10):
        sender.send(body(f"small {n}"))
        begin_large(mesh, sender)
        if n % 2:
            mesh.run(0.05)
        finish_large(mesh, sender)
    mesh.run_until(lambda: len(sender.outcomes) == 20)
    receiver = mesh.client("r2", "c").receiver(QUEUE[address], credit=100)
    mesh.run_until(lambda: len(receiver.messages) == 20)
    names = ["large" if len(message) > 1000 else text_of(message) for message in receiver.messages]
    assert names == [name for n in range(10) for name in (f"small {n}", "large")]


@pytest.mark.parametrize("address", ["two", "rpc", "jobs"])
def test_nothing_is_left_of_an_upload_whose_producer_dies(mesh: SimMesh, address: str):
    sender = mesh.client("r1").sender(address)
    mesh.send(sender, body("first"))
    mesh.run_until(lambda: bool(sender.outcomes))
    before = len(broker_links(mesh))
    client = mesh.client("r1", "dies")
    upload = client.sender(address)
    begin_large(mesh, upload)
    mesh.run_until(lambda: len(broker_links(mesh)) > before)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: len(broker_links(mesh)) == before, 3.0)
    assert stored(mesh, address) == 1


@pytest.mark.parametrize("address", ["rpc", "jobs"])
def test_a_fallback_ends_beside_a_stalled_upload(mesh: SimMesh, address: str):
    sender = mesh.client("r1").sender(address)
    for n in range(5):
        mesh.send(sender, body(f"m{n}"))
    upload = stalled(mesh, address)
    receiver = mesh.client("r2", "c").receiver(address, credit=10)
    mesh.run_until(lambda: len(receiver.messages) == 5)
    mesh.run_until(lambda: not falls_back(mesh, address), 1.0)
    mesh.send(sender, body("direct"))
    mesh.run_until(lambda: len(receiver.messages) == 6, 1.0)
    assert stored(mesh, address) == 5
    finish_large(mesh, upload)
    while stored(mesh, address) == 5:
        mesh.run(0.0005)
    assert all(falls_back(mesh, address, router) for router in mesh.routers if mesh.topology.brokers_at(router))
    mesh.send(upload, body("next"))
    mesh.run_until(lambda: len(receiver.messages) == 8, 5.0)
    assert text_of(receiver.messages[-1]) == "next"
    mesh.run_until(lambda: not falls_back(mesh, address), 5.0)


def falls_back(mesh: SimMesh, address: str, router: str = "r1") -> bool:
    return any(each.is_falling_back for each in mesh.routers[router].snapshot().addresses if each.address == address)


def test_more_uploads_than_a_broker_takes_sessions_all_get_there(mesh: SimMesh):
    client = mesh.client("r1")
    uploads = [client.sender("rpc") for _ in range(270)]
    for upload in uploads:
        begin_large(mesh, upload)
    for upload in uploads:
        finish_large(mesh, upload)
    mesh.run_until(lambda: all(upload.outcomes == {1: ACCEPTED} for upload in uploads))
    assert stored(mesh, "rpc") == 270


def test_a_way_to_the_queue_that_the_broker_ended_is_made_again(mesh: SimMesh):
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender, body("first"))
    mesh.run_until(lambda: bool(sender.outcomes))
    for link in broker_links(mesh):
        link.close(AmqpError("amqp:internal-error", "for once"))
    mesh.flush()
    mesh.run(0.1)
    mesh.send(sender, body("second"))
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED, 2: ACCEPTED}, 5.0)
