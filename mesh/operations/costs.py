"""Changes the link-state cost of a connection between two running routers, and lists costs that were changed so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from addressing.topology.model import Topology
from addressing.topology.queries import Edge
from mesh.operations.audited_changes import audited
from mesh.operations.node_requests import ask_node


def set_cost(topology: Topology, router: str, neighbor: str, cost: int) -> int:
    """Set the cost of a connection at both of its routers, as the larger one counts; return the larger cost before.

    Raises UsageError if the topology does not connect the routers, or one is unknown or an edge router; CommandFailed
    if one refuses the request; Unreachable if one is silent or does not run here.
    """
    edge = _edge(topology, router, neighbor)
    ends = ((edge.dialer, edge.to), (edge.to, edge.dialer))
    # Both routers are asked for a snapshot first, so that the command fails before any change if one does not answer.
    for name, _ in ends:
        ask_node(topology, name, "snapshot")
    with audited(topology, "cost", f"{router}/{neighbor}", {"cost": cost}) as change:
        before = 0
        for name, other in ends:
            before = max(before, int(ask_node(topology, name, "cost", neighbor=other, cost=cost)))
            change.is_begun = True
        change.told = {"before": {"cost": before}, "after": {"cost": cost}}
    return before


def _edge(topology: Topology, router: str, neighbor: str) -> Edge:
    for name in (router, neighbor):
        if name not in topology.routers:
            raise click.UsageError(
                f"unknown router '{name}' in mesh {topology.mesh}: expected one of {', '.join(topology.routers)}"
            )
    for name in (router, neighbor):
        if topology.routers[name].is_edge:
            raise click.UsageError(
                f"{name} is an edge router: the costs of its uplinks are those of the topology file, and do not "
                "change while the mesh runs"
            )
    for edge in topology.edges():
        if {edge.dialer, edge.to} == {router, neighbor}:
            return edge
    others = [edge.to if edge.dialer == router else edge.dialer for edge in _edges_at(topology, router)]
    raise click.UsageError(
        f"in the topology, router {router} is not connected to {neighbor}, but to {', '.join(others) or 'no router'}"
    )


def _edges_at(topology: Topology, router: str) -> Iterator[Edge]:
    """Yield the connections of ``router`` that no edge router dials: the only ones whose cost may be changed."""
    edges = (edge for edge in topology.edges() if not topology.routers[edge.dialer].is_edge)
    return (edge for edge in edges if router in (edge.dialer, edge.to))


def changed_costs(topology: Topology, snapshots: Mapping[str, Mapping[str, Any] | None]) -> Iterator[str]:
    """Yield a sentence for each connection whose cost at a running router differs from the topology's cost."""
    for edge in topology.edges():
        for router, other in ((edge.dialer, edge.to), (edge.to, edge.dialer)):
            cost = _cost(snapshots.get(router), other)
            if cost not in (None, edge.cost):
                yield f"{edge.dialer} - {edge.to} costs {cost}, and {edge.cost} in {_file_name(topology)}"
                break


def _file_name(topology: Topology) -> str:
    return topology.file.name if topology.file is not None else "the topology"


def _cost(snapshot: Mapping[str, Any] | None, neighbor: str) -> int | None:
    """Return the cost of the connection to ``neighbor`` in a router's ``snapshot``; None without a snapshot, or without
    such a connection in the snapshot.
    """
    views = snapshot["routers"] if snapshot is not None else ()
    return next((view["connection_cost"] for view in views if view["router"] == neighbor), None)
