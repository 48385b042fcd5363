"""The table of node kinds. Whatever starts, stops, probes or shows nodes asks this table, and knows no kind by name.

A new kind is one more entry, and one more section of the topology file in `addressing.topology.model`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesh.deploy.broker_kind import BrokerKind
from mesh.deploy.node_kind import NodeKind, NodePlan
from mesh.deploy.router_kind import RouterKind

if TYPE_CHECKING:
    from addressing.topology.model import Topology

ROUTER = RouterKind()
BROKER = BrokerKind()
NODE_KINDS: dict[str, NodeKind] = {kind.name: kind for kind in (ROUTER, BROKER)}
"""The kinds by name, in the order in which texts list the nodes of a mesh."""


def all_nodes(topology: Topology) -> list[NodePlan]:
    """Return the nodes that amqpmesh runs, in the order of the table."""
    return [NodePlan(name, kind) for kind in NODE_KINDS.values() for name in kind.names(topology)]


def plan(topology: Topology) -> list[NodePlan]:
    """Return the nodes that amqpmesh runs, in the order of their start."""
    return sorted(all_nodes(topology), key=lambda node: node.kind.rank)


def node_names(topology: Topology) -> tuple[str, ...]:
    return tuple(node.name for node in all_nodes(topology))


def kind_of(topology: Topology, name: str) -> NodeKind:
    """Return the kind of a declared node. Raises KeyError for another name."""
    for kind in NODE_KINDS.values():
        if name in kind.declared(topology):
            return kind
    raise KeyError(name)


def count_ranks() -> int:
    """Return the number of groups of nodes that are stopped one after the other."""
    return len({kind.rank for kind in NODE_KINDS.values()})
