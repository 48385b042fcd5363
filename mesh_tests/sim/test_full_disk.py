"""When the disk of a broker is low, what do producers and consumers behind routers see of it?"""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.store.space import Space
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.walk import data_section
from wire.delivery import ACCEPTED

GIB = 1 << 30
LONG_S = 120.0


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    mesh = SimMesh(
        {
            "mesh": "full",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
            "brokers": {name: {"data": name, "routers": ["r1"]} for name in ("b1", "b2")},
            "addresses": {
                "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
                "kept": {"type": "queue", "broker": "b1"},
            },
        },
        tmp_path,
    )
    mesh.kill_broker("b2")
    mesh.converge()
    return mesh


def tell(mesh: SimMesh, free_bytes: int) -> None:
    mesh.brokers["b1"].on_space(Space("b1", 10 * GIB, free_bytes), mesh.now)


@pytest.mark.parametrize("ingress", ["r1", "r2"])
@pytest.mark.parametrize("queue", ["kept", "sharded"])
def test_producers_wait_as_long_as_it_takes_while_consumers_drain_the_queue(
    mesh: SimMesh, ingress: str, queue: str
) -> None:
    sender = mesh.client(ingress).sender(queue)
    before = [mesh.send(sender, data_section(number, 100)) for number in range(1, 6)]
    mesh.run_until(lambda: len(sender.outcomes) == len(before))
    tell(mesh, GIB // 2)
    later = [mesh.send(sender, data_section(number, 100)) for number in range(6, 11)]
    receiver = mesh.client("r2").receiver(queue)
    mesh.run(LONG_S)
    assert receiver.taken == [data_section(number, 100) for number in range(1, 6)]
    assert (sender.error, sender.outcomes) == (None, dict.fromkeys(before, ACCEPTED))
    tell(mesh, 5 * GIB)
    mesh.run_until(lambda: len(receiver.taken) == 10)
    assert receiver.taken == [data_section(number, 100) for number in range(1, 11)]
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys([*before, *later], ACCEPTED))
