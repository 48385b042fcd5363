"""Do routers tell each other of more addresses than a message of the engine has room for, or a session's window?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mesh.simulation import sim_mesh
from mesh.simulation.sim_mesh import SimMesh
from router.settings import node_endpoint_settings

COUNT = 70_000
"""The engine holds 65,535 values in one message."""


def known(mesh: SimMesh, at: str, of: str) -> int:
    return {view.router: view.addresses for view in mesh.routers[at].snapshot().routers}[of]


def advertise(mesh: SimMesh, added: list[str], removed: list[str]) -> None:
    router = mesh.routers["r1"]
    router._act(router._routing.advertise(added, removed, mesh.now, at_once=True))
    mesh.flush()


@pytest.mark.parametrize("is_new", [False, True], ids=["to a neighbor", "to a new neighbor"])
@pytest.mark.parametrize("window_frames", [256, 4])
def test_a_router_tells_of_all_its_addresses_and_takes_them_back(
    monkeypatch: pytest.MonkeyPatch, window_frames: int, is_new: bool
):
    settings = lambda *who, **role: replace(node_endpoint_settings(*who, **role), window_frames=window_frames)  # noqa: E731
    monkeypatch.setattr(sim_mesh, "node_endpoint_settings", settings)
    routers = {"r1": {}, "r2": {"connect": ["r1"]}, "r3": {"connect": ["r2"]}}
    mesh = SimMesh({"mesh": "many", "node_tls": False, "routers": routers, "addresses": {"#": "anycast"}})
    mesh.converge()
    if is_new:
        mesh.cut_trunk("r2", "r1")
        mesh.run(1)
    keys = [f'M0device/{n}/\n"ü' for n in range(COUNT)]
    advertise(mesh, keys, [])
    if is_new:
        mesh.link("r2", "r1")
    mesh.run_until(lambda: known(mesh, "r3", "r1") == COUNT, 1)
    assert mesh.routers["r3"]._routing.routers_with(keys[-1]) == {"r1"}
    advertise(mesh, [], keys[1:])
    mesh.run_until(lambda: known(mesh, "r3", "r1") == 1, 1)
