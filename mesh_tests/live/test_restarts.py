"""How soon is a node back that somebody kills again and again?"""

from __future__ import annotations

import signal
from typing import Any

from mesh.deploy.workdir import SUPERVISOR
from mesh_tests.conftest import StartMesh
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: restarts
routers: {r1: {connect: [r2]}, r2: {}}
addresses: {work: anycast}
"""
KILLS = 5
LONGEST_DIAL_PAUSE_S = 1.0


def test_a_node_that_is_killed_five_times_is_back_and_linked_after_the_same_short_pause(start_mesh: StartMesh) -> None:
    mesh = start_mesh(TOPOLOGY)
    for kill in range(1, KILLS + 1):
        mesh.kill("r2")
        wait_until(lambda kill=kill: len(deaths(mesh)) == kill, 30, f"death {kill} to be noted")
        wait_until(lambda: is_linked(mesh.snapshot("r2")), 30, "r2 to be linked again")
        wait_until(lambda: mesh.is_up("r2"), 30, "the supervisor to notice that r2 is up")
    assert [death["restart_in_s"] for death in deaths(mesh)] == [0.5] * KILLS
    assert {death["exit_code"] for death in deaths(mesh)} == {-signal.SIGKILL}
    downs = [event for event in mesh.log("r1") if event["event"] == "connector_down"]
    assert downs
    assert max(event["retry_s"] for event in downs) <= LONGEST_DIAL_PAUSE_S


def deaths(mesh: RunningMesh) -> list[dict[str, Any]]:
    return [event for event in mesh.log(SUPERVISOR) if event["event"] == "node_died"]


def is_linked(snapshot: dict[str, Any] | None) -> bool:
    return snapshot is not None and any(view["is_neighbor"] for view in snapshot["node"]["routers"])
