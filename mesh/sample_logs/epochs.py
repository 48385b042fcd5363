"""Computes, for generated link logs, the outages in force at each time, and the paths that messages take meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import networkx

from addressing.topology.model import Topology
from linklogs.generating.plan import PlannedOutage
from router.routing.spf import Graph, Path, ShortestPaths, shortest_paths


@dataclass(frozen=True, slots=True)
class OutagesInForce:
    nodes: frozenset[str] = frozenset()
    links: frozenset[frozenset[str]] = frozenset()

    def breaks(self, path: Path) -> bool:
        return bool(self.nodes & set(path)) or any(frozenset(pair) in self.links for pair in pairwise(path))


@dataclass(frozen=True, slots=True)
class Epoch:
    """A span of time in which neither the outages in force change, nor the outages that routers know of.

    ``known``: outages whose start routers have noticed, and whose end they have not, so that paths avoid the lost nodes
    and links. ``broken``: outages in force.
    """

    from_us: int
    to_us: int
    known: OutagesInForce
    broken: OutagesInForce


@dataclass(frozen=True, slots=True)
class PathPeriod:
    """A path, and the span in which it is used without a pause.

    ``is_cut``: the path broke at ``to_us``; otherwise traffic moved away from a working path, or the plan ends then.
    """

    path: Path
    from_us: int
    to_us: int
    is_cut: bool
    cost: int = field(compare=False)


class Epochs:
    """The epochs of a topology with planned outages, and the paths that messages take in each.

    ``reroute_us``: time in us from the start or end of an outage until routers change their paths.
    """

    def __init__(
        self, topology: Topology, outages: Sequence[PlannedOutage], begins_us: int, ends_us: int, reroute_us: int
    ) -> None:
        self._topology = topology
        bounds = {begins_us, ends_us}
        for each in outages:
            bounds |= {each.from_us, each.from_us + reroute_us, each.to_us, each.to_us + reroute_us}
        ordered = sorted(at for at in bounds if begins_us <= at <= ends_us)
        self.epochs = tuple(
            Epoch(begin, end, _broken(outages, begin - reroute_us), _broken(outages, begin))
            for begin, end in pairwise(ordered)
        )
        self.ways = cache(self._ways)
        self._from = cache(self._shortest)

    @property
    def bounds(self) -> list[int]:
        return [epoch.from_us for epoch in self.epochs]

    def shortest(self, epoch: Epoch, source: str) -> ShortestPaths | None:
        """Return the shortest paths from ``source`` in ``epoch``, or None if routers know that ``source`` is down."""
        return self._from(epoch.known, source)

    def way(self, at_us: int, source: str, targets: tuple[str, ...]) -> PathPeriod | None:
        """Return the path in use at ``at_us`` from ``source`` to the nearest of ``targets``, with its span; None
        without a path.
        """
        return next((way for way in self.ways(source, targets) if way.from_us <= at_us < way.to_us), None)

    def to_broker(self, way: PathPeriod | None, broker: str, at_us: int) -> PathPeriod | None:
        """Return the path ``way`` with its span shortened to the time in which the broker at its end serves.

        Return None if ``way`` is None, or if the broker does not serve at ``at_us``: the broker is down, or routers do
        not know yet that the broker is back.
        """
        spans = self.spans(lambda epoch: broker not in epoch.broken.nodes | epoch.known.nodes)
        span = next(((from_us, to_us) for from_us, to_us in spans if from_us <= at_us < to_us), None)
        if way is None or span is None:
            return None
        from_us, to_us = max(way.from_us, span[0]), min(way.to_us, span[1])
        return PathPeriod(way.path, from_us, to_us, way.is_cut or to_us < way.to_us, way.cost)

    def up(self, routers: Iterable[str]) -> list[tuple[int, int]]:
        """Return the spans in which all ``routers`` (or brokers) and the connections between successive ones work."""
        path = tuple(routers)
        return self.spans(lambda epoch: not epoch.broken.breaks(path))

    def spans(self, is_so: Callable[[Epoch], bool]) -> list[tuple[int, int]]:
        """Return the spans, as pairs of start and end, in which ``is_so`` holds for the epoch."""
        found: list[tuple[int, int]] = []
        for epoch in self.epochs:
            if not is_so(epoch):
                continue
            if found and found[-1][1] == epoch.from_us:
                found[-1] = found[-1][0], epoch.to_us
            else:
                found.append((epoch.from_us, epoch.to_us))
        return found

    def _ways(self, source: str, targets: tuple[str, ...]) -> list[PathPeriod]:
        found: list[PathPeriod] = []
        for epoch in self.epochs:
            path, cost = self._nearest(epoch, source, targets)
            last = found[-1] if found and found[-1].to_us == epoch.from_us else None
            if last is not None and last.path == path and not epoch.broken.breaks(path):
                found[-1] = PathPeriod(path, last.from_us, epoch.to_us, False, cost)
                continue
            if last is not None and epoch.broken.breaks(last.path):
                found[-1] = PathPeriod(last.path, last.from_us, last.to_us, True, last.cost)
            if path and not epoch.broken.breaks(path):
                found.append(PathPeriod(path, epoch.from_us, epoch.to_us, False, cost))
        return found

    def _nearest(self, epoch: Epoch, source: str, targets: tuple[str, ...]) -> tuple[Path, int]:
        known = self.shortest(epoch, source)
        if known is None:
            return (), 0
        reached = [(known.costs[target], known.paths[target]) for target in targets if target in known.paths]
        cost, path = min(reached, default=(0, ()))
        return path, cost

    def _shortest(self, known: OutagesInForce, source: str) -> ShortestPaths | None:
        graph = self._graph(known)
        return shortest_paths(graph, source) if source in graph else None

    def _graph(self, known: OutagesInForce) -> Graph:
        graph = networkx.Graph()
        graph.add_nodes_from(name for name in self._topology.routers if name not in known.nodes)
        for name, router in self._topology.routers.items():
            if router.is_edge:
                self._add_uplink(graph, known, name)
        for edge in self._topology.edges():
            ends = (edge.dialer, edge.to)
            if not known.breaks(ends) and not any(self._topology.routers[end].is_edge for end in ends):
                graph.add_edge(*ends, cost=edge.cost)
        return graph

    def _add_uplink(self, graph: Graph, known: OutagesInForce, edge: str) -> None:
        """Add the active uplink of an edge router to the graph: the cheapest uplink that is not known to be broken."""
        for uplink, cost in self._topology.costs_at(edge).items():
            if not known.breaks((edge, uplink)):
                graph.add_edge(edge, uplink, cost=cost)
                return


def _broken(outages: Sequence[PlannedOutage], at_us: int) -> OutagesInForce:
    now = [each for each in outages if each.from_us <= at_us < each.to_us]
    return OutagesInForce(
        frozenset(each.what[0] for each in now if each.kind != "link"),
        frozenset(frozenset(each.what) for each in now if each.kind == "link"),
    )
