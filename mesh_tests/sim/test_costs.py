"""An operator changes what a connection costs: do paths follow, at every router, and does it outlast the connection?"""

from __future__ import annotations

import pytest

from mesh_tests.sim.line import ring
from mesh_tests.sim.world import SimMesh

HIGH = 10


def path_to(mesh: SimMesh, start: str, end: str) -> tuple[str, ...] | None:
    return {view.router: view.path for view in mesh.routers[start].snapshot().routers}[end]


def set_costs(mesh: SimMesh, cost: int, *ends: tuple[str, str]) -> list[int]:
    """What they were."""
    return [mesh.routers[router].set_cost(neighbor, cost, mesh.now) for router, neighbor in ends]


@pytest.mark.parametrize("ends", [[("r1", "r2")], [("r2", "r1")], [("r1", "r2"), ("r2", "r1")]])
def test_the_larger_cost_counts_and_every_router_agrees(ends: list[tuple[str, str]]):
    mesh = ring()
    assert path_to(mesh, "r1", "r3") == ("r1", "r2", "r3")
    assert set_costs(mesh, HIGH, *ends) == [1] * len(ends)
    mesh.run(0.02)
    assert path_to(mesh, "r1", "r3") == ("r1", "r4", "r3")
    assert path_to(mesh, "r3", "r1") == ("r3", "r4", "r1")
    assert path_to(mesh, "r1", "r2") == ("r1", "r4", "r3", "r2")
    assert set_costs(mesh, 1, *ends) == [HIGH] * len(ends)
    mesh.run(0.02)
    assert path_to(mesh, "r1", "r3") == ("r1", "r2", "r3")


def test_a_cost_lasts_when_the_connection_is_made_again():
    mesh = ring()
    set_costs(mesh, HIGH, ("r2", "r1"))
    mesh.cut_trunk("r1", "r2")
    mesh.run(1)
    mesh.link("r1", "r2")
    mesh.run(1)
    views = {view.router: view for view in mesh.routers["r1"].snapshot().routers}
    assert (views["r2"].is_neighbor, views["r2"].connection_cost) == (True, HIGH)


def test_new_traffic_takes_the_path_that_is_cheaper_now():
    mesh = ring()
    set_costs(mesh, HIGH, ("r1", "r2"))
    mesh.run(0.02)
    receiver = mesh.client("r3").receiver("rpc", credit=10)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.send(sender, b"x")
    mesh.run_until(lambda: len(receiver.messages) == 1)
    assert mesh.routers["r4"].snapshot().transit_circuits == 1
    assert mesh.routers["r2"].snapshot().transit_circuits == 0


@pytest.mark.parametrize(
    ("neighbor", "cost", "said"),
    [
        ("r3", 5, "r1 is not connected to 'r3', but to r2, r4"),
        ("r2", 0, "cost is 0, expected a whole number from 1 to 1000000"),
        ("r2", 1_000_001, "cost is 1000001, expected"),
        ("r2", "5", "cost is '5', expected"),
        ("r2", True, "cost is True, expected"),
    ],
)
def test_what_is_no_cost_or_no_neighbor_is_refused(neighbor: str, cost: object, said: str):
    mesh = ring()
    with pytest.raises(ValueError, match=said):
        mesh.routers["r1"].set_cost(neighbor, cost, mesh.now)
    assert path_to(mesh, "r1", "r3") == ("r1", "r2", "r3")
