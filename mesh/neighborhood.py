"""Which routers the topology makes neighbors, and which can reach each other."""

from __future__ import annotations

from collections.abc import Mapping

from addressing.topology import Topology


def expected_neighbors(topology: Topology) -> dict[str, set[str]]:
    neighbors: dict[str, set[str]] = {name: set() for name in topology.routers}
    for edge in topology.edges():
        neighbors[edge.dialer].add(edge.to)
        neighbors[edge.to].add(edge.dialer)
    return neighbors


def reachable(start: str, neighbors: Mapping[str, set[str]]) -> set[str]:
    """Every other router that the topology connects to ``start``."""
    reached, waiting = {start}, [start]
    while waiting:
        fresh = neighbors[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached - {start}


def parts(topology: Topology) -> list[list[str]]:
    """Routers that can reach each other, in the order of the topology. One part, if it is well made."""
    neighbors = expected_neighbors(topology)
    found: list[list[str]] = []
    for router in topology.routers:
        part = {router, *reachable(router, neighbors)}
        if not any(router in known for known in found):
            found.append([name for name in topology.routers if name in part])
    return found
