"""What is recorded of time without credit is what links had: whoever took the credit back, or was asked to give it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Ring
from mesh_tests.seeds import seeds
from mesh_tests.sim.invariants import CheckedMesh
from mesh_tests.sim.walk import Walk
from recording.records import Recorder
from router.forwarding.ends import Inlet


def recorder_of(name: str) -> Recorder:
    return Recorder(Ring(1 << 16).memory, "summary")


def inlets(mesh: SimMesh) -> list[Inlet]:
    """Of routers, with links of their own: a sender without an address has several with one link."""
    ends = [
        end for node in mesh.routers.values() for pipe in mesh.pipes_of(node) for end in pipe.ends if end[0] is node
    ]
    links = [link for _, endpoint in ends for link in endpoint.links]
    return [link.owner for link in links if isinstance(link.owner, Inlet) and not link.is_gone]


def assert_agreed(mesh: SimMesh) -> None:
    found = inlets(mesh)
    assert found
    for inlet in found:
        said = f"{inlet.link!r} of {inlet.group!r} has {inlet.link.credit} credit"
        assert inlet.starves == (inlet.link.credit <= 0), said


def routed(folder: Path) -> SimMesh:
    """A queue behind r2, at which a client's own links end (a route), and shards at r1 and r2."""
    model: dict[str, Any] = {
        "mesh": "drained",
        "node_tls": False,
        "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
        "brokers": {"b1": {"data": "b1", "routers": ["r2"]}, "b2": {"data": "b2", "routers": ["r1"]}},
        "addresses": {
            "orders": {"type": "queue", "broker": "b1"},
            "shards": {"type": "queue", "brokers": ["b1", "b2"]},
        },
    }
    mesh = SimMesh(model, folder, recorder_of=recorder_of)
    mesh.converge()
    mesh.run_until(lambda: all(each.is_up for node in mesh.routers.values() for each in node.snapshot().brokers))
    mesh.run(0.2)
    return mesh


def test_a_route_that_lost_its_broker_took_the_credit_of_its_client(tmp_path: Path):
    mesh = routed(tmp_path)
    sender = mesh.client("r1").sender("orders")
    mesh.run_until(lambda: sender.link.credit > 0)
    assert_agreed(mesh)
    mesh.kill_broker("b1")
    mesh.run_until(lambda: sender.link.credit == 0)
    assert_agreed(mesh)
    mesh.close()


@pytest.mark.parametrize("address", ["orders", "shards"])
def test_credit_that_a_drain_gave_and_took_is_heard_of(tmp_path: Path, address: str):
    mesh = routed(tmp_path)
    receiver = mesh.client("r1").receiver(address, credit=0)
    mesh.run(0.2)
    assert_agreed(mesh)
    receiver.link.request_drain(10)
    mesh.flush()
    for _ in range(30):
        mesh.run(0.001)
        assert_agreed(mesh)
    mesh.run(1.0)
    assert_agreed(mesh)
    assert receiver.link.credit == 0
    mesh.close()


class CreditWalk(Walk):
    def make_mesh(self, folder: Path) -> SimMesh:
        return CheckedMesh(self, self.topology(), folder, recorder_of=recorder_of)

    def pause(self) -> None:
        super().pause()
        if inlets(self.mesh):
            assert_agreed(self.mesh)


@pytest.mark.parametrize("seed", seeds(8))
def test_in_no_random_life_does_the_record_differ_from_the_links(tmp_path: Path, seed: int):
    CreditWalk(seed, tmp_path).live(250)
