"""When does a consumer of a queue that waits to hear that its outcome counts hear so? [2.8.3]"""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.simulation.clients import SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_settle_modes import TWO_STEPS
from mesh_tests.sim.walk import data_section
from wire.delivery import ACCEPTED

QUEUES = ("kept", "sharded", "rpc")


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    """Of the brokers of the sharded queue only one is there."""
    mesh = SimMesh(
        {
            "mesh": "confirming",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
            "brokers": {name: {"data": name, "routers": ["r1"]} for name in ("b1", "b2")},
            "addresses": {
                "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
                "kept": {"type": "queue", "broker": "b1"},
                "rpc": {"type": "anycast", "fallback": "kept"},
            },
        },
        tmp_path,
    )
    mesh.kill_broker("b2")
    mesh.converge()
    return mesh


def consumer_of_one(mesh: SimMesh, egress: str, queue: str) -> SimReceiver:
    """It has a message that the broker has kept."""
    sender = mesh.client("r1").sender(queue)
    mesh.send(sender, data_section(1, 100))
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    receiver = mesh.client(egress).receiver(queue, modes=TWO_STEPS)
    receiver.accepts = False
    mesh.run_until(lambda: bool(receiver.held))
    return receiver


@pytest.mark.parametrize("egress", ["r1", "r2"])
@pytest.mark.parametrize("queue", QUEUES)
def test_it_hears_so_when_the_broker_has_it_on_disk(
    mesh: SimMesh, egress: str, queue: str, monkeypatch: pytest.MonkeyPatch
):
    receiver = consumer_of_one(mesh, egress, queue)
    monkeypatch.setattr(mesh.brokers["b1"], "serve_disk", lambda: False)
    receiver.settle()
    mesh.run(1)
    assert receiver.confirmed == []
    monkeypatch.undo()
    mesh.run_until(lambda: len(receiver.confirmed) == 1)


@pytest.mark.parametrize("egress", ["r1", "r2"])
@pytest.mark.parametrize("queue", ["sharded", "rpc"])
def test_it_hears_that_it_may_not_count_when_the_broker_is_lost(
    mesh: SimMesh, egress: str, queue: str, monkeypatch: pytest.MonkeyPatch
):
    receiver = consumer_of_one(mesh, egress, queue)
    monkeypatch.setattr(mesh.brokers["b1"], "serve_disk", lambda: False)
    receiver.settle()
    mesh.run(0.5)
    mesh.kill_broker("b1")
    mesh.run_until(lambda: len(receiver.doubtful) == 1)
