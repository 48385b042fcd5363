"""Who gets how much credit, in virtual time."""

from __future__ import annotations

import pytest
from proton import Message

from mesh.simulation.clients import SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from router.forwarding.credit import PERIOD_S
from router.forwarding.settings import ForwardingSettings
from wire.delivery import RELEASED

CAPACITY = ForwardingSettings().link_capacity


def busy(mesh: SimMesh, sender: SimSender, seconds: float) -> int:
    """Send whatever credit allows, for so long; how many were accepted."""
    end = mesh.now + seconds
    while mesh.now < end:
        while sender.link.credit > 0:
            sender.send(b"x")
        mesh.run(0.005)
    return len(sender.outcomes)


def test_credit_moves_from_an_idle_producer_to_a_busy_one():
    mesh = line(1)
    mesh.client("r1").receiver("rpc", credit=100)
    idle = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: idle.link.credit > 50)
    working = mesh.client("r1").sender("rpc")
    busy(mesh, working, 4 * PERIOD_S)
    assert idle.link.credit == 1
    assert working.link.credit + len(working.open) > 50


def test_a_hundred_producers_share_a_consumer_with_credit_one_and_none_starves():
    mesh = line(1)
    mesh.client("r1").receiver("rpc", credit=1)
    senders = [mesh.client("r1").sender("rpc") for _ in range(30)]
    for _ in range(200):
        for sender in senders:
            while sender.link.credit > 0:
                sender.send(b"x")
        mesh.run(0.01)
    assert min(len(sender.outcomes) for sender in senders) >= 3


def test_producers_at_several_ingresses_share_a_scarce_consumer_at_the_far_end():
    mesh = line(3)
    mesh.client("r3").receiver("rpc", credit=1)
    senders = [mesh.client(router).sender("rpc") for router in ("r1", "r1", "r2", "r3")]
    for _ in range(300):
        for sender in senders:
            while sender.link.credit > 0:
                sender.send(b"x")
        mesh.run(0.01)
    assert min(len(sender.outcomes) for sender in senders) >= 10


def test_credit_that_went_idle_far_away_comes_back_to_who_needs_it():
    mesh = line(3)
    mesh.client("r3").receiver("rpc", credit=100)
    idle = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: idle.link.credit > 50)
    working = mesh.client("r3").sender("rpc")
    busy(mesh, working, 10 * PERIOD_S)
    assert working.link.credit + len(working.open) > 50


@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize("capacity", [20, 1000])
def test_a_producer_never_holds_more_credit_than_its_listener_grants(egress: str, address: str, capacity: int):
    mesh = line(listener={} if capacity == 1000 else {"link_capacity": capacity})
    mesh.client(egress).receiver(address, credit=2000)
    sender = mesh.client("r1").sender(address)
    mesh.run(1)
    assert sender.link.credit == capacity


def test_anonymous_messages_without_any_taker_are_released_at_once():
    mesh = line(3)
    sender = mesh.client("r1").sender(None)
    mesh.run_until(lambda: sender.link.credit > 0)
    for to in ("rpc", "prices", "amqp:/_topo/0/r9/temp.x"):
        sender.send(Message(address=to, body="a").encode())
    mesh.run(0.1)
    assert set(sender.outcomes.values()) == {RELEASED}
    assert len(sender.outcomes) == 3


def test_a_dynamic_address_whose_consumer_left_is_released():
    mesh = line(3)
    replies = mesh.client("r3").receiver(None, dynamic=True)
    mesh.run_until(lambda: replies.link.is_open)
    address = replies.link.remote_source.address
    replies.link.close()
    mesh.run(0.1)
    sender = mesh.client("r1").sender(None)
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(Message(address=address, body="a").encode())
    mesh.run_until(lambda: len(sender.outcomes) == 1, 1)
    assert sender.outcomes[1] == RELEASED


def test_a_producer_whose_deliveries_nobody_settles_ends_at_the_capacity_of_its_link(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=2 * CAPACITY)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    busy(mesh, sender, 3)
    assert CAPACITY <= sender.count <= CAPACITY + 1
    assert len(receiver.held) == sender.count


def test_a_consumer_may_hold_what_many_producers_may_have_sent_however_far_they_are(egress: str):
    """It settles in large batches, say: nothing on the way may count them all as one producer's."""
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=4 * CAPACITY)
    receiver.accepts = False
    senders = [mesh.client("r1").sender("rpc") for _ in range(4)]
    for _ in range(100):
        for sender in senders:
            busy(mesh, sender, 0.005)
    assert len(receiver.held) == 4 * CAPACITY


def send_until_it_stops(mesh: SimMesh, sender: SimSender, message: bytes) -> None:
    without_s = 0.0
    while without_s < 0.5:
        mesh.run(0.002)
        without_s = 0.0 if sender.link.credit > 0 else without_s + 0.002
        if sender.link.credit > 0:
            sender.send(message)


@pytest.mark.parametrize("routers", [1, 3])
@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize(("size", "most"), [(100, 1000), (60_000, 400)])
def test_fewer_large_deliveries_are_outstanding_than_small_ones(
    address: str, size: int, most: int, routers: int
) -> None:
    """Whoever holds what he gets makes every router keep it."""
    mesh = line(routers)
    receiver = mesh.client(f"r{routers}").receiver(address, credit=5000)
    receiver.accepts = receiver.tops_up = False
    sender = mesh.client("r1").sender(address)
    send_until_it_stops(mesh, sender, bytes(size))
    assert len(receiver.messages) <= most + 1, "one of them is the float"
    assert len(receiver.messages) >= most / 2, "and no fewer than need be"
    receiver.accepts = True
    receiver.settle()
    mesh.run_until(lambda: sender.link.credit > most / 4)
