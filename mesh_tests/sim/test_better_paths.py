"""A circuit moves to a better path: what if that is refused, or the old one is lost, or its consumer is busy then?"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh.simulation.world import Pipe
from mesh_tests.sim.line import ADDRESSES, ring
from mesh_tests.sim.test_costs import HIGH, STABLE_S, set_costs
from mesh_tests.sim.test_fallback import body, body_of
from router.circuits.circuits import Circuits
from router.distribution.upkeep import IDLE_S
from wire.delivery import ACCEPTED
from wire.errors import AmqpError
from wire.link import Link


@pytest.mark.parametrize("condition", ["amqp:resource-limit-exceeded", "amqpmesh:path-lost"])
def test_a_circuit_that_is_refused_takes_nobodys_place(monkeypatch: pytest.MonkeyPatch, condition: str):
    mesh = ring()
    receiver = mesh.client("r3").receiver("rpc", credit=100)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    refused = []

    def pass_on(circuits: Circuits, near: Link, spec: Any) -> None:
        refused.append(spec)
        raise AmqpError(condition, "not here")

    monkeypatch.setattr(Circuits, "pass_on", pass_on)
    set_costs(mesh, HIGH, ("r1", "r2"))
    came_at, seen = [mesh.now], 0
    for n in range(1000):
        mesh.send(sender, body(f"{n}"))
        mesh.run(0.01)
        if len(receiver.messages) > seen:
            seen = len(receiver.messages)
            came_at.append(mesh.now)
    assert refused
    assert max(later - earlier for earlier, later in pairwise(came_at)) < 0.05
    mesh.run(1)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert len(sender.outcomes) == 1000


class Batching(SimMesh):
    """What comes to r1 from r2 is read every 4 ms, in one piece."""

    def arrive(self, pipe: Pipe, end: int, data: bytes) -> None:
        if pipe is not self.trunks.get(frozenset({"r1", "r2"})) or pipe.ends[end][0] is not self.routers["r1"]:
            super().arrive(pipe, end, data)
            return
        batch: list[bytes] = self.__dict__.setdefault("batch", [])

        def read() -> None:
            together = b"".join(batch)
            batch.clear()
            SimMesh.arrive(self, pipe, end, together)

        if not batch:
            self.at(math.ceil(self.now / 0.004 + 1e-9) * 0.004, read)
        batch.append(data)


def test_the_old_circuit_may_be_lost_in_the_read_that_tells_of_the_better_one():
    routers = {
        "r1": {"connect": ["r2"]},
        "r2": {"connect": ["r3", "r4"]},
        "r3": {"connect": ["r5"]},
        "r4": {"connect": ["r5"]},
        "r5": {},
    }
    for step in range(40):
        mesh = Batching({"mesh": "batching", "node_tls": False, "routers": routers, "addresses": ADDRESSES})
        mesh.converge()
        receiver = mesh.client("r5").receiver("rpc", credit=100)
        sender = mesh.client("r1").sender("rpc")
        mesh.run_until(lambda sender=sender: sender.link.credit > 0)
        set_costs(mesh, HIGH, ("r2", "r3"))
        mesh.run(STABLE_S + 0.0005 * step)
        mesh.kill("r3")
        mesh.run(0.05)
        mesh.send(sender, body("x"))
        mesh.run_until(lambda receiver=receiver: len(receiver.messages) == 1, 1)


def test_closest_knows_what_a_path_costs_now():
    """The path is the same, and is the only one: nothing is made anew."""
    routers = {"r1": {"connect": ["r2", {"to": "r4", "cost": 2}]}, "r2": {}, "r4": {}}
    mesh = SimMesh({"mesh": "closest", "node_tls": False, "routers": routers, "addresses": ADDRESSES})
    mesh.converge()
    near, far = (mesh.client(router).receiver("near", credit=100) for router in ("r2", "r4"))
    sender = mesh.client("r1").sender("near")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.run(0.5)
    mesh.send(sender, body("before"))
    mesh.run(0.1)
    set_costs(mesh, HIGH, ("r1", "r2"))
    mesh.run(0.1)
    mesh.send(sender, body("after"))
    mesh.run(0.1)
    assert [body_of(message) for message in near.messages] == [b"before"]
    assert [body_of(message) for message in far.messages] == [b"after"]


def test_what_was_sent_settled_waits_on_the_left_circuit_for_its_consumers_credit():
    mesh = ring()
    receiver = mesh.client("r3").receiver("rpc", credit=1)
    sender = mesh.client("r1").sender("rpc")
    for n in range(2):
        mesh.send(sender, body(f"{n}"), settled=True)
    mesh.run_until(lambda: len(receiver.messages) == 1)
    receiver.tops_up = False
    set_costs(mesh, HIGH, ("r1", "r2"))
    mesh.run(10)
    receiver.link.grant(5)
    mesh.flush()
    mesh.run_until(lambda: [body_of(message) for message in receiver.messages] == [b"0", b"1"], 1)
    mesh.run_until(lambda: mesh.routers["r2"].snapshot().transit_circuits == 0, 5)


@pytest.mark.parametrize("address", ["spilling", "rpc"])
@pytest.mark.parametrize("rests", [True, False])
def test_a_producer_goes_on_to_another_consumer_while_that_of_the_left_circuit_is_busy(address: str, rests: bool):
    """r3's consumer has one and wants no more; r4's is idle, but dearer."""
    routers = {
        "r1": {"connect": ["r2", {"to": "r5", "cost": 3}, {"to": "r4", "cost": 9}]},
        "r2": {"connect": ["r3"]},
        "r5": {"connect": ["r3"]},
        "r3": {},
        "r4": {},
    }
    mesh = SimMesh({"mesh": "busy", "node_tls": False, "routers": routers, "addresses": ADDRESSES})
    mesh.converge()
    busy = mesh.client("r3").receiver(address, credit=1)
    busy.accepts = False
    sender = mesh.client("r1").sender(address)
    mesh.send(sender, body("m1"))
    mesh.run_until(lambda: len(busy.held) == 1)
    idle = mesh.client("r4").receiver(address, credit=50)
    mesh.run(1)
    if rests:
        mesh.send(sender, body("m2"))
        mesh.run_until(lambda: len(idle.messages) == 1, 10)
    set_costs(mesh, HIGH - 2, ("r1", "r2"))
    mesh.run(2 * STABLE_S)
    assert mesh.routers["r5"].snapshot().transit_circuits == 1
    for n in range(5):
        mesh.send(sender, body(f"m{3 + n}"))
        mesh.run(1)
    mesh.run_until(lambda: len(sender.outcomes) == sender.count - 1, 10)
    assert set(sender.outcomes.values()) == {ACCEPTED}


LARGE_BYTES = 300_000


def large(number: int) -> bytes:
    data = b"%06d" % number * (LARGE_BYTES // 6)
    return b"\x00\x53\x75\xb0" + len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize("is_settled", [False, True], ids=["unsettled", "settled"])
@pytest.mark.parametrize("smalls", [0, 1], ids=["large ones", "with small ones"])
@pytest.mark.parametrize("pause_s", [0.02, 1.0], ids=["busy", "now and then"])
def test_the_next_large_message_takes_the_better_path_in_order(is_settled: bool, smalls: int, pause_s: float):
    mesh = ring()
    receiver = mesh.client("r3").receiver("rpc", credit=20_000)
    sender = mesh.client("r1").sender("rpc")
    mesh.trunks[frozenset({"r1", "r2"})].delay_s = 0.01
    began, sent = mesh.now, []
    changed = False
    while mesh.now < began + 4 * STABLE_S:
        if not changed and mesh.now > began + STABLE_S / 2:
            changed = True
            set_costs(mesh, HIGH, ("r1", "r2"))
        for message in (large(len(sent)), *[body(f"{n}") for n in range(smalls)]):
            mesh.send(sender, message, settled=is_settled)
            sent.append(message)
        mesh.run(pause_s)
    mesh.run_until(lambda: len(receiver.messages) == len(sent) and not sender.open)
    assert receiver.messages == sent
    assert set(sender.outcomes.values()) <= {ACCEPTED}
    assert mesh.routers["r2"].snapshot().transit_circuits == 0
    assert mesh.routers["r4"].snapshot().transit_circuits == 2


@pytest.mark.parametrize("is_settled", [False, True], ids=["unsettled", "settled"])
def test_a_large_message_on_the_better_path_waits_for_those_on_the_slow_one(is_settled: bool):
    mesh = ring()
    receiver = mesh.client("r3").receiver("rpc", credit=100)
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender, large(0), settled=is_settled)
    mesh.run(0.1)
    set_costs(mesh, HIGH, ("r1", "r2"))
    mesh.run(STABLE_S - 0.1)
    mesh.trunks[frozenset({"r1", "r2"})].delay_s = 0.5
    mesh.send(sender, large(1), settled=is_settled)
    mesh.run_until(lambda: mesh.routers["r4"].snapshot().transit_circuits == 1, STABLE_S)
    mesh.run(0.02)
    mesh.send(sender, large(2), settled=is_settled)
    mesh.run_until(lambda: len(receiver.messages) == 3)
    assert receiver.messages == [large(0), large(1), large(2)]


@pytest.mark.parametrize("stays", ["the producer", "nobody"])
def test_a_circuit_that_was_left_ends_when_its_egress_has_no_consumer_any_more(stays: str):
    mesh = ring()
    consumer, producer = mesh.client("r3"), mesh.client("r1")
    receiver, sender = consumer.receiver("rpc", credit=1), producer.sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(body("0"), settled=True)
    mesh.run_until(lambda: len(receiver.messages) == 1)
    set_costs(mesh, HIGH, ("r1", "r2"))
    mesh.run(STABLE_S + 0.5)
    assert len(circuits_at(mesh, "r1")) == 2, "the circuit that was left waits for credit to ask for its barrier"
    mesh.cut(consumer.pipe)
    if stays == "nobody":
        mesh.cut(producer.pipe)
    mesh.run(IDLE_S + 2)
    assert {name: circuits_at(mesh, name) for name in mesh.routers if circuits_at(mesh, name)} == {}


def circuits_at(mesh: SimMesh, router: str) -> list[str]:
    """The circuits that the router has links of."""
    connections = mesh.routers[router]._connections.values()
    return [link.name for each in connections for link in each.endpoint.links if link.name.startswith("anycast/")]
