"""Does `closest` keep to the closest consumers, also while they have no credit for a moment? With `spill`: no."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from wire.delivery import ACCEPTED, RELEASED

LARGE_BYTES = 200_000
COUNT = 100


def slow(mesh: SimMesh, *routers: str, address: str = "near") -> list[SimReceiver]:
    """Each takes one message at a time, and asks for the next a moment after it has settled the one before."""
    receivers = [mesh.client(router).receiver(address, credit=1) for router in routers]
    for receiver in receivers:
        receiver.accepts = False
    return receivers


def work(
    mesh: SimMesh, receivers: list[SimReceiver], sender: SimSender, count: int = COUNT, size: int = 1
) -> list[int]:
    """How many of the messages each consumer got."""
    for _ in range(200 * count):
        if sender.count < count and sender.link.credit > 0:
            sender.send(bytes(size))
        mesh.run(0.002)
        for receiver in receivers:
            if receiver.held:
                receiver.settle()
                mesh.run(0.003)
                receiver.link.grant(1)
        if len(sender.outcomes) == count:
            break
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert len(sender.outcomes) == count
    return [len(receiver.messages) for receiver in receivers]


@pytest.mark.parametrize("size", [1, LARGE_BYTES])
@pytest.mark.parametrize("producer", ["r1", "r2", "r3"])
def test_the_closest_consumer_gets_all_though_it_is_out_of_credit_at_times(producer: str, size: int):
    mesh = line()
    receivers = slow(mesh, "r1", "r2", "r3")
    sender = mesh.client(producer).sender("near")
    mesh.run(0.5)
    got = work(mesh, receivers, sender, 30, size)
    assert got == [30 if router == producer else 0 for router in ("r1", "r2", "r3")]


@pytest.mark.parametrize("other", ["r2", "r3"])
def test_the_closest_of_those_at_other_routers_gets_all(other: str):
    mesh = line()
    receivers = slow(mesh, "r2", "r3")
    sender = mesh.client("r1").sender("near")
    mesh.run(0.5)
    assert work(mesh, receivers, sender) == [COUNT, 0]


def test_of_equally_close_ones_those_with_credit_get_the_messages():
    mesh = line()
    receivers = slow(mesh, "r1", "r1", "r2")
    sender = mesh.client("r1").sender("near")
    mesh.run(0.5)
    here, too, there = work(mesh, receivers, sender)
    assert there == 0
    assert min(here, too) > COUNT // 4


def test_with_spill_others_get_what_the_closest_has_no_credit_for():
    mesh = line()
    receivers = slow(mesh, "r1", "r2", "r3", address="spilling")
    sender = mesh.client("r1").sender("spilling")
    mesh.run(0.5)
    got = work(mesh, receivers, sender)
    assert got[0] < COUNT, "the others got some"


@pytest.mark.parametrize("nearest", ["r1", "r2"])
def test_a_message_waits_for_the_closest_until_that_leaves(nearest: str):
    mesh = line()
    client = mesh.client(nearest)
    near, far = client.receiver("near", credit=0), mesh.client("r3").receiver("near", credit=100)
    mesh.run(0.5)
    sender = mesh.client("r1").sender("near")
    mesh.send(sender)
    mesh.run(10)
    assert (near.messages, far.messages, sender.outcomes) == ([], [], {})
    near.link.close()
    mesh.flush()
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, 5)
    assert far.messages == [b"x"]


def test_a_producer_is_promised_what_the_closest_take_and_not_what_others_would():
    mesh = line()
    near = mesh.client("r1").receiver("near", credit=3)
    mesh.client("r2").receiver("near", credit=100)
    mesh.run(0.5)
    sender = mesh.client("r1").sender("near")
    mesh.run(0.5)
    assert sender.link.credit == 3
    near.link.close()
    mesh.flush()
    mesh.run(0.5)
    assert sender.link.credit == 100


def test_what_the_closest_released_goes_to_the_next():
    mesh = line()
    near, far = mesh.client("r1").receiver("near", credit=10), mesh.client("r2").receiver("near", credit=10)
    near.accepts = False
    mesh.run(0.5)
    sender = mesh.client("r1").sender("near")
    mesh.send(sender)
    mesh.run_until(lambda: bool(near.held))
    near.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    assert far.messages == [b"x"]


def test_one_that_comes_closer_than_the_others_gets_what_waits():
    mesh = line()
    far = mesh.client("r3").receiver("near", credit=0)
    mesh.run(0.5)
    sender = mesh.client("r1").sender("near")
    mesh.send(sender)
    mesh.run(1)
    near = mesh.client("r2").receiver("near", credit=10)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, 6)
    assert (near.messages, far.messages) == ([b"x"], [])


def test_an_address_with_a_fallback_keeps_to_the_closest_too(tmp_path: Path):
    topology: dict[str, Any] = {
        "mesh": "kept",
        "node_tls": False,
        "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
        "brokers": {"b1": {"data": "b1", "routers": ["r2"]}},
        "addresses": {
            "jobs": {"type": "anycast", "distribution": "closest", "fallback": "kept"},
            "kept": {"type": "queue", "broker": "b1"},
        },
    }
    mesh = SimMesh(topology, tmp_path)
    mesh.converge()
    receivers = slow(mesh, "r1", "r2", address="jobs")
    sender = mesh.client("r1").sender("jobs")
    mesh.run(2)
    assert work(mesh, receivers, sender, 30) == [30, 0]
