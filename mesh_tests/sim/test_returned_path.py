"""The cheap path is back. Which path do clients take that come two to four seconds later?

There are two paths between r1 and r2: over `a`, of cost 2, and over `b`, of cost 8.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import end_towards

TOPOLOGY: dict[str, Any] = {
    "mesh": "two-paths",
    "node_tls": False,
    "routers": {
        "r1": {"connect": [{"to": "a", "cost": 1}, {"to": "b", "cost": 4}]},
        "r2": {"connect": [{"to": "a", "cost": 1}, {"to": "b", "cost": 4}]},
        "a": {},
        "b": {},
    },
    "addresses": {"rpc": "anycast", "prices": "multicast", "near": {"type": "anycast", "distribution": "closest"}},
}
BODY = bytes(1000)


def pair(mesh: SimMesh, address: str) -> tuple[list[SimClient], SimSender, SimReceiver]:
    clients = [mesh.client("r1"), mesh.client("r2")]
    receiver = clients[1].receiver(address, credit=100)
    return clients, clients[0].sender(address), receiver


def written(mesh: SimMesh, over: str) -> int:
    return end_towards(mesh, "r1", over).bytes_out


def send(mesh: SimMesh, sender: SimSender, seconds: float) -> None:
    for _ in range(int(seconds / 0.05)):
        if sender.link.credit > 0:
            sender.send(BODY)
        mesh.run(0.05)


@pytest.mark.parametrize("address", ["rpc", "near", "prices"])
@pytest.mark.parametrize("leaves", ["nobody", "the producer", "everybody"])
@pytest.mark.parametrize("seed", range(6))
def test_clients_that_come_after_the_cheap_path_returned_take_it(address: str, leaves: str, seed: int):
    random = Random(f"{address} {leaves} {seed}")
    mesh = SimMesh(TOPOLOGY)
    mesh.converge()
    clients, sender, _ = pair(mesh, address)
    send(mesh, sender, random.uniform(0.2, 3))
    cut = random.choice(["r1", "r2"])
    mesh.cut_trunk(cut, "a")
    before = written(mesh, "b")
    send(mesh, sender, random.uniform(0.5, 5))
    assert written(mesh, "b") - before > 5 * len(BODY), "the other path carries it"
    for client in {"nobody": [], "the producer": clients[:1], "everybody": clients}[leaves]:
        mesh.cut(client.pipe)
    mesh.run(random.uniform(0, 2))
    mesh.link(cut, "a")
    if leaves == "nobody":
        send(mesh, sender, random.uniform(2.1, 4))
    else:
        mesh.run(random.uniform(2.1, 4))
    _, newcomer, receiver = pair(mesh, address)
    mesh.run_until(lambda: newcomer.link.credit > 0)
    before = written(mesh, "b")
    send(mesh, newcomer, 1.8)
    mesh.run_until(lambda: len(newcomer.outcomes) == newcomer.count)
    assert newcomer.count > 20
    assert receiver.messages
    assert written(mesh, "b") - before < 5 * len(BODY)
