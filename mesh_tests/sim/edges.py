"""How does a test get a mesh with edge routers?

e1 - r1 - r2 - r3 - e3      e1 may also use r2, e3 also r2; e2 is at r1, and may use r3
  \\__/ \\_e2_____/
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import ADDRESSES

QUEUES: dict[str, Any] = {
    "orders": {"type": "queue", "broker": "b1"},
    "news": {"type": "topic", "broker": "b1"},
    "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
    "kept": {"type": "queue", "broker": "b1"},
    "calls": {"type": "anycast", "fallback": "kept"},
}


def with_edges(**more: Any) -> SimMesh:
    """``more``: other keys of the topology."""
    mesh = SimMesh(_topology(more))
    mesh.converge()
    return mesh


def with_brokers(folder: Path, **more: Any) -> SimMesh:
    """b1 at r1, b2 at r3."""
    brokers = {"b1": {"data": "b1", "routers": ["r1"]}, "b2": {"data": "b2", "routers": ["r3"]}}
    mesh = SimMesh(_topology({"addresses": ADDRESSES | QUEUES, "brokers": brokers, **more}), folder)
    mesh.converge()
    mesh.run(0.5)
    return mesh


def _topology(more: dict[str, Any]) -> dict[str, Any]:
    listener = more.pop("listener", None)
    routers: dict[str, Any] = {
        "r1": {"connect": ["r2"]},
        "r2": {"connect": ["r3"]},
        "r3": {},
        "e1": {"mode": "edge", "connect": ["r1", "r2"]},
        "e2": {"mode": "edge", "connect": ["r1", "r3"]},
        "e3": {"mode": "edge", "connect": ["r3", "r2"]},
    }
    if listener is not None:
        routers = {router: {**model, "listeners": [listener]} for router, model in routers.items()}
    return {"mesh": "edges", "node_tls": False, "routers": routers, "addresses": ADDRESSES, **more}
