"""Does a producer that stops in the middle of a message stop anybody else? For ten seconds, then it loses its link.

The consumer of a large message takes nothing else before the end of that message. So the router watches each message
that a client began: no byte for `sender_stall_timeout_s`, although the client could send.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from router.events import LinkEnded
from wire.delivery import ACCEPTED
from wire.message import Message, encode
from wire.terminus import Durability, Expiry

STALL_S = 10.0
LOOK_S = STALL_S / 4
HALF_BYTES = 200_000
PIECE = bytes(65536)
BROKERS: dict[str, Any] = {
    "brokers": {"b1": {"data": "b1", "routers": ["r2"]}, "b2": {"data": "b2", "routers": ["r2"]}},
    "addresses": {
        "inbox": {"type": "queue", "broker": "b1"},
        "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
        "news": {"type": "topic", "broker": "b1"},
        "jobs": {"type": "anycast", "fallback": "inbox"},
    },
}
EDGES: dict[str, Any] = {
    "routers": {"r1": {"connect": ["r2"]}, "r2": {}, "e1": {"mode": "edge", "connect": ["r1"]}},
    "mesh": "edges",
    "node_tls": False,
    "addresses": {"rpc": "anycast", "prices": "multicast"},
}


def begin(mesh: SimMesh, sender: SimSender, first: bytes) -> Any:
    """Half a message."""
    mesh.run_until(lambda: sender.link.credit > 0)
    delivery = sender.begin()
    sender.link.send(first)
    mesh.flush()
    return delivery


def message(size: int, to: str | None = None) -> bytes:
    return encode(Message(bytes(size), to=to))


def ended(mesh: SimMesh) -> list[LinkEnded]:
    return [event for _, _, event in mesh.log if isinstance(event, LinkEnded)]


def is_detached_for_it(sender: SimSender) -> bool:
    return sender.error is not None and getattr(sender.error, "condition", "") == "amqp:link:detach-forced"


@pytest.mark.parametrize("address", ["rpc", "near", "again", "prices"])
@pytest.mark.parametrize("by_name", [True, False], ids=["address of the link", "anonymous"])
def test_others_go_on_when_a_producer_stops_in_the_middle_of_a_message(egress: str, address: str, by_name: bool):
    mesh = line()
    receiver = mesh.client(egress).receiver(address, credit=100)
    sender = mesh.client("r1").sender(address if by_name else None)
    begin(mesh, sender, message(2 * HALF_BYTES, to=address)[:HALF_BYTES])
    mesh.run(0.1)
    other = mesh.client("r1").sender(address)
    mesh.run(STALL_S - 1)
    assert sender.error is None
    mesh.run(1 + LOOK_S + 0.1)
    assert is_detached_for_it(sender)
    assert f"{STALL_S:g} s" in sender.error.description
    assert [event.condition for event in ended(mesh)] == ["amqp:link:detach-forced"]
    number = mesh.send(other, b"small")
    mesh.run_until(lambda: other.outcomes == {number: ACCEPTED}, 1)
    assert receiver.messages == [b"small"]


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_what_others_sent_meanwhile_comes_as_soon_as_the_half_message_is_aborted(egress: str, address: str):
    mesh = line()
    receiver = mesh.client(egress).receiver(address, credit=100)
    sender, other = (mesh.client("r1").sender(address) for _ in range(2))
    mesh.run_until(lambda: other.link.credit > 0)
    begin(mesh, sender, bytes(HALF_BYTES))
    mesh.run(0.1)
    other.send(b"small")
    mesh.run_until(lambda: bool(other.outcomes), STALL_S + LOOK_S + 0.5)
    assert (receiver.messages, receiver.aborted) == ([b"small"], 1)


def test_a_message_that_is_begun_behind_one_that_waits_stops_nobody_and_keeps_its_link():
    mesh = line(1)
    receiver = mesh.client("r1").receiver("rpc", credit=2)
    receiver.tops_up = False
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit == 2)
    receiver.link.set_credit(0)
    sender.send(b"whole")
    delivery = sender.begin()
    sender.link.send(bytes(1000))
    mesh.run(3 * STALL_S)
    assert sender.link.credit == 1, "the second one was begun"
    assert (sender.error, receiver.messages) == (None, [])
    receiver.link.grant(2)
    mesh.run_until(lambda: receiver.messages == [b"whole"], 1)
    sender.link.send(b"end")
    sender.link.finish()
    mesh.run_until(lambda: delivery not in sender.open, 1)
    assert [len(each) for each in receiver.messages] == [5, 1003]


def test_complete_messages_before_the_half_one_are_delivered(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=2)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender, b"whole")
    begin(mesh, sender, bytes(HALF_BYTES))
    mesh.run_until(lambda: is_detached_for_it(sender), STALL_S + LOOK_S + 0.1)
    assert receiver.messages == [b"whole"]
    assert receiver.aborted == 1


@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize("begun", [100, HALF_BYTES])
def test_a_slow_producer_keeps_its_link(egress: str, address: str, begun: int):
    mesh = line()
    receiver = mesh.client(egress).receiver(address, credit=10)
    sender = mesh.client("r1").sender(address)
    begin(mesh, sender, bytes(begun))
    for _ in range(120):
        mesh.run(5)
        sender.link.send(bytes(1024))
        mesh.flush()
    sender.link.finish()
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, 1)
    assert [len(each) for each in receiver.messages] == [begun + 120 * 1024]


@pytest.mark.parametrize("address", ["rpc", "work.a"])
def test_a_producer_that_may_not_send_keeps_its_link(egress: str, address: str):
    """Its consumer reads nothing, so the windows on the way are shut, one after the other."""
    mesh = line()
    consumer = mesh.client(egress, window_frames=4)
    receiver = consumer.receiver(address, credit=10)
    receiver.reads = False
    sender = mesh.client("r1").sender(address)
    sent, written = len(PIECE), -1
    begin(mesh, sender, PIECE)
    while written != sender.link.endpoint.bytes_out:
        written = sender.link.endpoint.bytes_out
        sender.link.send(PIECE)
        sent += len(PIECE)
        mesh.run(0.02)
    assert sent > 2_000_000
    mesh.run(6 * STALL_S)
    assert sender.error is None
    sender.link.finish()
    consumer.resume(receiver)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, 60)
    assert [len(each) for each in receiver.messages] == [sent]


def test_a_producer_whose_small_frames_used_up_its_window_keeps_its_link(egress: str):
    """A window counts frames: it is shut though there is room for bytes, and opens when half of that is free."""
    mesh = line()
    consumer = mesh.client(egress, window_frames=4)
    receiver = consumer.receiver("rpc", credit=10)
    receiver.reads = False
    sender = mesh.client("r1").sender("rpc")
    begin(mesh, sender, PIECE)
    sent = len(PIECE)
    while sender.link.is_writable:
        piece = PIECE if sender.link.session.remote_window_frames > 110 else bytes(100)
        sender.link.send(piece)
        sent += len(piece)
        mesh.flush()
        mesh.run(0.005)
    assert sender.link.session.remote_window_frames == 0
    mesh.run(6 * STALL_S)
    assert sender.error is None
    consumer.resume(receiver)
    mesh.run(5)
    sender.link.finish()
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, 60)
    assert [len(each) for each in receiver.messages] == [sent]


def test_a_producer_whose_credit_was_taken_back_may_go_on_with_what_it_began():
    mesh = line(1)
    consumer = mesh.client("r1")
    consumer.receiver("rpc", credit=10)
    sender = mesh.client("r1").sender("rpc")
    begin(mesh, sender, bytes(1000))
    mesh.run(0.1)
    consumer.endpoint.close()
    mesh.flush()
    for _ in range(10):
        mesh.run(STALL_S / 2)
        sender.link.send(bytes(10))
        mesh.flush()
    assert sender.error is None


def test_a_router_that_slept_blames_nobody():
    """What came meanwhile lies in the socket still when the timer runs."""
    mesh = line(1)
    mesh.client("r1").receiver("rpc", credit=10)
    sender = mesh.client("r1").sender("rpc")
    begin(mesh, sender, bytes(HALF_BYTES))
    mesh.run(1)
    node = mesh.routers["r1"]
    node.on_time(mesh.now + 60)
    assert not ended(mesh)


# Through brokers
@pytest.fixture(params=["r1", "r2"])
def mesh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SimMesh]:
    """The brokers are at r2; the clients at r2 or at r1."""
    made = SimMesh(
        {"mesh": "kept", "node_tls": False, "routers": {"r1": {"connect": ["r2"]}, "r2": {}}, **BROKERS}, tmp_path
    )
    made.converge()
    yield made
    made.close()


@pytest.mark.parametrize("at", ["r1", "r2"])
@pytest.mark.parametrize("address", ["inbox", "sharded", "news", "jobs"])
def test_a_half_message_to_a_broker_stops_nobody_and_its_link_ends(mesh: SimMesh, address: str, at: str):
    lasting: dict[str, Any] = {}
    if address == "news":
        lasting = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER, "name": "subscription"}
    receiver: SimReceiver = mesh.client(at).receiver(address, credit=100, **lasting)
    mesh.run(0.5)
    sender = mesh.client(at).sender(address)
    begin(mesh, sender, message(2 * HALF_BYTES)[:HALF_BYTES])
    other = mesh.client(at).sender(address)
    mesh.run(STALL_S + LOOK_S + 0.1)
    assert is_detached_for_it(sender)
    number = mesh.send(other, message(3))
    mesh.run_until(lambda: other.outcomes == {number: ACCEPTED}, 2)
    mesh.run_until(lambda: [each[-3:] for each in receiver.messages] == [bytes(3)], 2)


# Through an edge router
@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize(("at", "to"), [("e1", "r2"), ("r2", "e1"), ("e1", "e1")])
def test_a_half_message_at_or_to_an_edge_stops_nobody(address: str, at: str, to: str):
    mesh = SimMesh(EDGES)
    mesh.converge()
    receiver = mesh.client(to).receiver(address, credit=100)
    sender = mesh.client(at).sender(address)
    begin(mesh, sender, bytes(HALF_BYTES))
    mesh.run(STALL_S + LOOK_S + 0.1)
    assert is_detached_for_it(sender)
    other = mesh.client(at).sender(address)
    number = mesh.send(other, b"small")
    mesh.run_until(lambda: other.outcomes == {number: ACCEPTED}, 1)
    assert receiver.messages == [b"small"]
