"""Compute the best paths between routers by rules that give the same answer at every router.

The cheapest path is best; of equals the path with the fewest hops, then the path with the smallest router ids,
compared in order from the source. Every beginning and every end of a best path is a best path, too: the paths of one
source form a tree, and routers that each choose the next hop choose together what the source would choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Graph: TypeAlias = Any  # A networkx.Graph whose nodes are router ids; every edge has a "cost" of at least 1.
Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """The best paths from one source router, and their costs, to every router in reach, including the source."""

    paths: Mapping[str, Path]
    costs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Branch:
    """One router in a multicast tree.

    ``deliver``: the router has takers of its own; ``children``: the next routers, to which it passes deliveries on.
    """

    deliver: bool
    children: Mapping[str, Branch]


def only(source: str) -> ShortestPaths:
    """Return the paths of a router that knows no other."""
    return ShortestPaths({source: (source,)}, {source: 0})


def shortest_paths(graph: Graph, source: str) -> ShortestPaths:
    # A graph is there, so networkx is imported (`LinkState.graph`).
    import networkx

    predecessors, costs = networkx.dijkstra_predecessor_and_distance(graph, source, weight="cost")
    paths: dict[str, Path] = {source: (source,)}
    # The routers come in rising order of their costs, and every edge has a cost of at least 1, so the predecessors of a
    # router already have their paths.
    for router in costs:
        if router != source:
            candidates = (paths[before] for before in predecessors[router])
            paths[router] = (*min(candidates, key=_hops_then_ids), router)
    return ShortestPaths(paths, costs)


def _hops_then_ids(path: Path) -> tuple[int, Path]:
    return len(path), path


def path(graph: Graph, source: str, target: str) -> Path | None:
    return shortest_paths(graph, source).paths.get(target) if source in graph else None


def tree(paths: Mapping[str, Path], targets: Iterable[str]) -> dict[str, Branch]:
    """Return the multicast tree to ``targets``, the union of their ``paths``: next router -> the branch behind it.

    A target without a path is left out.
    """
    wanted = {target for target in targets if target in paths}
    return _branches([paths[target] for target in sorted(wanted)], 1, wanted)


def _branches(paths: list[Path], depth: int, targets: set[str]) -> dict[str, Branch]:
    by_router: dict[str, list[Path]] = {}
    for one in paths:
        if len(one) > depth:
            by_router.setdefault(one[depth], []).append(one)
    return {
        router: Branch(router in targets, _branches(through, depth + 1, targets))
        for router, through in sorted(by_router.items())
    }
