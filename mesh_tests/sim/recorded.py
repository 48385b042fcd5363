"""Routers of the simulation that record, and what they told."""

from __future__ import annotations

from typing import Any

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Ring
from mesh_tests.sim.line import ADDRESSES
from recording.records import Recorder


def router(ring: Ring, level: str = "full", **more: Any) -> SimMesh:
    addresses = {**ADDRESSES, **more.pop("addresses", {})}
    model = {"mesh": "one", "node_tls": False, "routers": {"r1": {}}, "addresses": addresses, **more}
    recorder = Recorder(ring.memory, level)
    return SimMesh(model, recorder_of=lambda name: recorder)


def told(ring: Ring, kind: str) -> list[dict[str, Any]]:
    return [row for row in ring.take()[1] if row["kind"] == kind]
