"""How many files and sockets do the nodes of a mesh have open, and do they give back what clients cost?"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

LINGER_S = 10.0


def descriptors(mesh: RunningMesh, nodes: Iterable[str]) -> dict[str, int]:
    """But for UNIX sockets: whoever asks a node for its state, as a test does, has one for a moment."""
    return {node: _count(mesh.pid(node)) for node in nodes}


def _count(pid: int) -> int:
    local = {f"socket:[{line.split()[6]}]" for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]}
    count = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(descriptor) not in local
    return count


def descriptors_at_rest(mesh: RunningMesh, nodes: Iterable[str]) -> dict[str, int]:
    """When nobody is there, and all connections to brokers are closed whose clients left, as those of `up`.

    ``nodes`` are all nodes of the mesh, whose brokers are embedded ones.
    """
    nodes = list(nodes)

    def is_at_rest() -> bool:
        states = [mesh.snapshot(node)["node"] for node in nodes]
        routers = [state for state in states if "router_id" in state]
        held = sum(state["connection_count"] for state in states if state not in routers)
        made = sum(broker["is_up"] for router in routers for broker in router["brokers"])
        clients = [each for router in routers for each in router["connections"] if each["kind"] == "client"]
        return not clients and held == made

    wait_until(is_at_rest, LINGER_S, "nodes to be connected to each other only")
    return descriptors(mesh, nodes)


def wait_for_descriptors(mesh: RunningMesh, wanted: dict[str, int], timeout_s: float) -> None:
    """Until each of the nodes has as many as are wanted of it; AssertionError says how many they have instead."""
    try:
        wait_until(lambda: descriptors(mesh, wanted) == wanted, timeout_s, f"descriptors to be {wanted} again")
    except AssertionError as error:
        raise AssertionError(
            f"descriptors were {wanted}, are {descriptors(mesh, wanted)} after {timeout_s} s"
        ) from error
