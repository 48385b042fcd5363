"""What the topology declares, next to what the host's nodes have of it: the state of each node and connection. Sans-IO.

A node is unknown if no node of the host has its name: perhaps it runs on another host. A connection is missing only if
a node of this host runs and does not have the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.watch.host_model import HostModel

UNKNOWN: Final = "unknown"
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
    """The states of what ``plan`` declares, by what ``host`` has now."""

    def __init__(self, plan: MeshPlan, host: HostModel) -> None:
        self._plan, self._host = plan, host
        self._peers = {
            node.name: {each.container for each in node.connections.values() if each.role != "client"}
            for node in host.nodes.values()
        }

    def is_running(self, name: str) -> bool:
        node = self._host.nodes.get(name)
        return node is not None and node.state == "running"

    def of_node(self, name: str) -> str:
        """Return the state of a node as entity `node` has it, or UNKNOWN."""
        node = self._host.nodes.get(name)
        return UNKNOWN if node is None else node.state

    def of_connection(self, planned: PlannedConnection) -> str:
        """Return UP, MISSING, UNKNOWN, or SPARE for a connection that an edge router has in reserve."""
        one, other = planned.one, planned.other
        # A router gives a broker the name of the mesh as container-id, so that only the router's end tells.
        ends = [(one, other), *([] if self._plan.roles[other] == "broker" else [(other, one)])]
        heard = [
            b in (self._host.nodes[a].neighbors if planned.is_link_state else self._peers[a])
            for a, b in ends
            if self.is_running(a)
        ]
        if not heard:
            return UNKNOWN
        if all(heard):
            return UP
        edge = next((name for name in (one, other) if self._plan.roles[name] == "edge"), None)
        return SPARE if edge is not None and self._has_uplink(edge) else MISSING

    def _has_uplink(self, edge: str) -> bool:
        """Tell whether an edge router has one of its connections: it uses one, others are in reserve."""
        routers = [
            planned.other if planned.one == edge else planned.one
            for planned in self._plan.connections
            if edge in (planned.one, planned.other)
        ]
        return any(router in self._peers.get(edge, ()) or edge in self._peers.get(router, ()) for router in routers)


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
