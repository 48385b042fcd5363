"""The nodes and connections that the topology declares, and the state of each node and connection now. Sans-IO.

A node is unknown if no observer can tell of the node now. A connection is missing only if one of its nodes is known to
run and does not have the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mesh.watch.node_summary import UNKNOWN, NodeSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from addressing.topology.model import Topology

UP: Final = "up"
MISSING: Final = "missing"
SPARE: Final = "spare"


@dataclass(frozen=True, slots=True)
class PlannedConnection:
    """A connection between two nodes. ``cost`` is None for a broker. ``is_link_state``: both are interior routers."""

    one: str
    other: str
    cost: int | None
    is_link_state: bool = False


@dataclass(frozen=True, slots=True)
class MeshPlan:
    """``roles``: by name of each node, router, edge or broker, in the order of the file.

    ``existing``: brokers that amqpmesh does not run. ``broker_routers``: by broker, the routers that connect to it.
    """

    mesh: str
    roles: dict[str, str]
    existing: frozenset[str]
    connections: tuple[PlannedConnection, ...]
    broker_routers: dict[str, tuple[str, ...]]


class MeshState:
    """The states of the nodes and connections of ``plan``, by the summary of each known node: ``nodes``, by name."""

    def __init__(self, plan: MeshPlan, nodes: Mapping[str, NodeSummary]) -> None:
        self._plan, self.nodes = plan, nodes

    def is_running(self, name: str) -> bool:
        return name in self.nodes and self.nodes[name].is_running

    def of_node(self, name: str) -> str:
        """Return the state of a node as entity `node` has it, or UNKNOWN."""
        return self.nodes[name].state if name in self.nodes else UNKNOWN

    def of_connection(self, planned: PlannedConnection) -> str:
        """Return UP, MISSING, UNKNOWN, or SPARE for a connection that an edge router has in reserve."""
        one, other = planned.one, planned.other
        # A router gives a broker the name of the mesh as container-id, so that only the router's end tells.
        ends = [(one, other), *([] if self._plan.roles[other] == "broker" else [(other, one)])]
        told = [(self.nodes[a], b) for a, b in ends if self.is_running(a)]
        heard = [
            other in (node.neighbors if planned.is_link_state else node.peers)
            for node, other in told
            if not node.is_cut
        ]
        if not heard:
            return UNKNOWN
        if all(heard):
            return UP
        edge = next((name for name in (one, other) if self._plan.roles[name] == "edge"), None)
        return SPARE if edge is not None and self._has_uplink(edge) else MISSING

    def _has_uplink(self, edge: str) -> bool:
        """Tell whether an edge router has a connection: an edge router uses one connection, others are in reserve."""
        routers = [
            planned.other if planned.one == edge else planned.one
            for planned in self._plan.connections
            if edge in (planned.one, planned.other)
        ]
        return any(router in self._peers(edge) or edge in self._peers(router) for router in routers)

    def _peers(self, name: str) -> tuple[str, ...]:
        return self.nodes[name].peers if name in self.nodes else ()


def mesh_plan(topology: Topology) -> MeshPlan:
    """Return the plan that ``topology`` declares; of two connections between the same routers, the first."""
    roles = {name: "edge" if router.is_edge else "router" for name, router in topology.routers.items()}
    connections: dict[frozenset[str], PlannedConnection] = {}
    for edge in topology.edges():
        is_link_state = roles[edge.dialer] == roles[edge.to] == "router"
        connections.setdefault(
            frozenset((edge.dialer, edge.to)), PlannedConnection(edge.dialer, edge.to, edge.cost, is_link_state)
        )
    existing = frozenset(name for name, broker in topology.brokers.items() if not broker.is_embedded)
    return MeshPlan(
        topology.mesh,
        {**roles, **dict.fromkeys(topology.brokers, "broker")},
        existing,
        (
            *connections.values(),
            *(
                PlannedConnection(router, broker, None)
                for broker in topology.brokers
                if broker not in existing
                for router in topology.routers_of(broker)
            ),
        ),
        {broker: tuple(topology.routers_of(broker)) for broker in topology.brokers},
    )
