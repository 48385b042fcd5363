"""Computes from a topology which routers are neighbors, and which routers can reach each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from addressing.topology.model import Topology


def expected_neighbors(topology: Topology) -> dict[str, set[str]]:
    """Return the neighbors that the topology gives each interior router; edge routers are left out on both sides."""
    neighbors: dict[str, set[str]] = {name: set() for name in topology.interior_routers}
    for edge in topology.edges():
        if edge.dialer in neighbors:
            neighbors[edge.dialer].add(edge.to)
            neighbors[edge.to].add(edge.dialer)
    return neighbors


def reachable(start: str, neighbors: Mapping[str, set[str]]) -> set[str]:
    """Return every other router that ``neighbors`` connects to ``start``, over any number of hops."""
    reached, waiting = {start}, [start]
    while waiting:
        fresh = neighbors[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached - {start}


def parts(topology: Topology) -> list[list[str]]:
    """Return the routers in groups: those of one group can reach each other. A topology without a gap is one group.

    An edge router is in the group of its first uplink in the topology. Groups and routers keep the topology's order.
    """
    neighbors = expected_neighbors(topology)
    found: list[list[str]] = []
    uplinks = {edge: next(iter(topology.costs_at(edge))) for edge in topology.edge_routers}
    for router in topology.interior_routers:
        part = {router, *reachable(router, neighbors)}
        if not any(router in known for known in found):
            found.append([name for name in topology.routers if uplinks.get(name, name) in part])
    return found
