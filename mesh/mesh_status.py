"""What `up` and `status` show: the mesh as its supervisor sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class NodeState(StrEnum):
    STARTING = "starting"
    UP = "up"
    SILENT = "silent"
    """Its process lives and was up, but does not answer."""
    WAITING = "waiting"
    """Died; will be started again when its back-off is over."""
    STOPPING = "stopping"
    DOWN = "down"


class Phase(StrEnum):
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
    """`router` or `broker`"""
    state: NodeState
    pid: int | None = None
    restarts: int = 0
    detail: str = ""
    """What it waits for, or why it died."""


@dataclass(frozen=True, slots=True)
class MeshStatus:
    mesh: str
    phase: Phase
    nodes: tuple[NodeStatus, ...]
    detail: str = ""

    @classmethod
    def from_map(cls, fields: Mapping[str, Any]) -> MeshStatus:
        nodes = tuple(NodeStatus(**{**node, "state": NodeState(node["state"])}) for node in fields["nodes"])
        return cls(fields["mesh"], Phase(fields["phase"]), nodes, fields["detail"])

    def to_map(self) -> dict[str, Any]:
        """The document of `up --json`, and what a supervisor answers."""
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
