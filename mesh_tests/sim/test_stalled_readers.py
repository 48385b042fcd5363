"""Does a consumer that grants credit and does not read stop anybody but its own producers?"""

from __future__ import annotations

import pytest

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.egress import egress_at
from mesh_tests.sim.line import end_towards, line
from wire.delivery import ACCEPTED, RELEASED

BUDGET_BYTES = 64 << 20
SIZES = [(100, 1000), (10_000, 1000), (60_000, 250), (100_000, 100), (3_000_000, 5)]
"""Bytes of a message, and how many: more than the session of four frames takes that its consumer allows."""


def stalled(mesh: SimMesh, egress: str, address: str) -> SimReceiver:
    client = mesh.client(egress, address, window_frames=4, max_frame_bytes=16384)
    receiver = client.receiver(address, credit=1000)
    receiver.reads = False
    return receiver


def send(mesh: SimMesh, sender: SimSender, bodies: list[bytes]) -> None:
    for body in bodies:
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(body)
        mesh.run(0.001)


def resume(mesh: SimMesh, receiver: SimReceiver) -> None:
    client = next(client for client in mesh.nodes if getattr(client, "endpoint", None) is receiver.link.endpoint)
    client.resume(receiver)


def are_others_served(mesh: SimMesh, egress: str) -> bool:
    receiver = mesh.client(egress).receiver("work.moving", credit=100)
    sender = mesh.client("r1").sender("work.moving")
    bodies = [b"%d" % number for number in range(50)]
    send(mesh, sender, bodies)
    mesh.run(1)
    return receiver.messages == bodies and sender.outcomes == {number + 1: ACCEPTED for number in range(50)}


@pytest.mark.parametrize(("size", "count"), SIZES, ids=[f"{count} x {size}" for size, count in SIZES])
def test_all_others_go_on_and_it_gets_everything_in_order_once_it_reads(egress: str, size: int, count: int):
    mesh = line()
    receiver = stalled(mesh, egress, "work.stalled")
    sender = mesh.client("r1").sender("work.stalled")
    bodies = [number.to_bytes(4, "big").ljust(size, b"x") for number in range(count)]
    send(mesh, sender, bodies)
    assert are_others_served(mesh, egress)
    assert not receiver.messages
    resume(mesh, receiver)
    mesh.run_until(lambda: len(sender.outcomes) == count, 10)
    assert receiver.messages == bodies
    assert set(sender.outcomes.values()) == {ACCEPTED}


@pytest.mark.parametrize("size", [40_000, 100_000])
def test_what_came_settled_waits_on_the_way_though_the_credit_for_it_was_taken_back(size: int):
    """By its egress, to which messages so large are a surprise: more were promised than it would promise of these."""
    mesh = line(listener={"link_capacity": 1000})
    receiver = stalled(mesh, "r3", "work.stalled")
    receiver.reads = True
    sender = mesh.client("r1").sender("work.stalled")
    mesh.run_until(lambda: sender.link.credit == 1000)
    onward = end_towards(mesh, "r2", "r3")
    onward.is_output_blocked = True
    bodies = [number.to_bytes(4, "big").ljust(size, b"x") for number in range(600)]
    for body in bodies:
        sender.send(body, settled=True)
    mesh.flush()
    mesh.run(0.1)
    onward.is_output_blocked = False
    mesh.run_until(lambda: len(receiver.messages) > 50)
    receiver.reads = False
    mesh.run(10)
    assert len(receiver.messages) < len(bodies)
    resume(mesh, receiver)
    mesh.run_until(lambda: len(receiver.messages) == len(bodies), 30)
    assert receiver.messages == bodies


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
@pytest.mark.parametrize(("size", "count"), SIZES, ids=[f"{count} x {size}" for size, count in SIZES])
def test_a_multicast_that_has_to_wait_for_one_stops_no_other_address(egress: str, size: int, count: int, settled: bool):
    mesh = line()
    stalled(mesh, egress, "prices")
    sender = mesh.client("r1").sender("prices")
    mesh.run(0.1)
    for _ in range(count):
        if sender.link.credit > 0:
            sender.send(bytes(size), settled=settled)
        mesh.run(0.001)
    assert are_others_served(mesh, egress)


@egress_at("r2", "r3")
def test_what_a_router_cannot_keep_of_them_is_released_and_all_others_go_on(egress: str):
    mesh = line()
    size, count = 60_000, 250
    addresses = [f"work.stalled{number}" for number in range(6)]
    for address in addresses:
        stalled(mesh, egress, address)
    senders = [mesh.client("r1").sender(address) for address in addresses]
    for sender in senders:
        send(mesh, sender, [bytes(size)] * count)
    assert are_others_served(mesh, egress)
    outcomes = [outcome for sender in senders for outcome in sender.outcomes.values()]
    assert set(outcomes) == {RELEASED}
    assert len(senders) * count * size - len(outcomes) * size <= BUDGET_BYTES + (16 << 20)
