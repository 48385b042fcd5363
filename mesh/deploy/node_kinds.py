"""The table of node kinds. Code that starts, stops, probes or shows nodes asks this table, and knows no kind by name.

A new kind of node needs an entry here, and a section of the topology file in `addressing.topology.model`.
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
"""The kinds by name; output for people lists the nodes of a mesh in this order."""


def all_nodes(topology: Topology) -> list[NodePlan]:
    """Return the nodes of a topology that amqpmesh runs, in the order of ``NODE_KINDS`` and of the topology."""
    return [NodePlan(name, kind) for kind in NODE_KINDS.values() for name in kind.names(topology)]


def plan(topology: Topology) -> list[NodePlan]:
    """Return the nodes of a topology that amqpmesh runs, in the order in which the supervisor starts processes."""
    return sorted(all_nodes(topology), key=lambda node: node.kind.rank)


def node_names(topology: Topology) -> tuple[str, ...]:
    return tuple(node.name for node in all_nodes(topology))


def kind_of(topology: Topology, name: str) -> NodeKind:
    """Return the kind of node ``name``; raises KeyError if the topology declares no node of this name."""
    for kind in NODE_KINDS.values():
        if name in kind.declared(topology):
            return kind
    raise KeyError(name)


def count_ranks() -> int:
    """Return the number of ranks of nodes: the supervisor stops one rank after the other."""
    return len({kind.rank for kind in NODE_KINDS.values()})
