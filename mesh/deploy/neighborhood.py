"""Computes from a topology which routers are neighbors, and which routers can reach each other."""

from __future__ import annotations

from collections.abc import Mapping

from addressing.topology.model import Topology


def expected_neighbors(topology: Topology) -> dict[str, set[str]]:
    """Return the neighbors of each interior router; edge routers are left out."""
    neighbors: dict[str, set[str]] = {name: set() for name in topology.interior_routers}
    for edge in topology.edges():
        if edge.dialer in neighbors:
            neighbors[edge.dialer].add(edge.to)
            neighbors[edge.to].add(edge.dialer)
    return neighbors


def reachable(start: str, neighbors: Mapping[str, set[str]]) -> set[str]:
    """Return every other router that the topology connects to ``start``, over any number of hops."""
    reached, waiting = {start}, [start]
    while waiting:
        fresh = neighbors[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached - {start}


def parts(topology: Topology) -> list[list[str]]:
    """Group the routers that can reach each other, in the order of the topology. A sound topology is one group.

    An edge router is in the group of the preferred uplink.
    """
    neighbors = expected_neighbors(topology)
    found: list[list[str]] = []
    uplinks = {edge: next(iter(topology.costs_at(edge))) for edge in topology.edge_routers}
    for router in topology.interior_routers:
        part = {router, *reachable(router, neighbors)}
        if not any(router in known for known in found):
            found.append([name for name in topology.routers if uplinks.get(name, name) in part])
    return found
