"""The state of a mesh and of its nodes as the supervisor sees them; `up` and `status` show this state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class NodeState(StrEnum):
    STARTING = "starting"
    UP = "up"
    SILENT = "silent"
    """The process of the node runs but does not answer at its control socket; only `status` reports this state."""
    WAITING = "waiting"
    """The node died; the supervisor starts the node again after a delay, see ``mesh.deploy.backoff``."""
    STOPPING = "stopping"
    DOWN = "down"
    UNKNOWN = "unknown"
    """The node is not on this host, and no observer can tell of it; only `status` reports this state."""


class MeshPhase(StrEnum):
    STARTING = "starting"
    LINKING = "linking"
    PROBING = "probing"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NodeStatus:
    name: str
    kind: str
    """The name of the kind in `mesh.deploy.node_kinds`, such as `router`."""
    state: NodeState
    pid: int | None = None
    restarts: int = 0
    detail: str = ""
    """The cause of the node's last death, until the node is up again; else empty."""


@dataclass(frozen=True, slots=True)
class MeshStatus:
    mesh: str
    phase: MeshPhase
    nodes: tuple[NodeStatus, ...]
    detail: str = ""

    @classmethod
    def from_map(cls, fields: Mapping[str, Any]) -> MeshStatus:
        nodes = tuple(NodeStatus(**{**node, "state": NodeState(node["state"])}) for node in fields["nodes"])
        return cls(fields["mesh"], MeshPhase(fields["phase"]), nodes, fields["detail"])

    def to_map(self) -> dict[str, Any]:
        """Return the document of `up --json`, which is also the supervisor's answer at the control socket."""
        return {
            "mesh": self.mesh,
            "phase": str(self.phase),
            "detail": self.detail,
            "nodes": [
                {
                    "name": node.name,
                    "kind": node.kind,
                    "state": str(node.state),
                    "pid": node.pid,
                    "restarts": node.restarts,
                    "detail": node.detail,
                }
                for node in self.nodes
            ],
        }

    def node(self, name: str) -> NodeStatus | None:
        return next((node for node in self.nodes if node.name == name), None)
