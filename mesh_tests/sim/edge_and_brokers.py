"""Three routers in a line, an edge router at the first and two brokers at the last, with the addresses of a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mesh.simulation.sim_mesh import SimMesh


def mesh_with(folder: Path, addresses: dict[str, Any], **more: Any) -> SimMesh:
    """Return the mesh once it has converged and its brokers are connected. ``more``: further keys of the topology."""
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {
                "r1": {"connect": ["r2"]},
                "r2": {"connect": ["r3"]},
                "r3": {},
                "e1": {"mode": "edge", "connect": ["r1"]},
            },
            "brokers": {"b1": {"data": "b1", "routers": ["r3"]}, "b2": {"data": "b2", "routers": ["r3"]}},
            "default_broker": "b1",
            "addresses": addresses,
            **more,
        },
        folder,
    )
    ready(mesh)
    return mesh


def ready(mesh: SimMesh) -> None:
    mesh.converge()
    mesh.run_until(lambda: all(broker.is_up for node in mesh.routers.values() for broker in node.snapshot().brokers))
