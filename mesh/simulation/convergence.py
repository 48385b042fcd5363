"""Measures convergence of a simulated mesh's link state after a change: time, routers with a wrong graph, CPU time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import networkx

from mesh.simulation.sim_mesh import SimMesh
from mesh.simulation.world import Pipe
from router.node import RouterNode
from router.routing import spf

SAMPLE = 20


@dataclass(frozen=True, slots=True)
class Convergence:
    """Convergence after one change of the mesh. ``took_s``: virtual time until the last router's graph changed.

    ``took_s`` is None if no router's graph changed.
    """

    took_s: float | None
    wrong: tuple[str, ...]
    """Routers whose graph of the mesh, as learned by link state, differs from the connections that exist."""


class WatchedMesh(SimMesh):
    """A simulated mesh that records when each router's graph of the mesh last changed, and the CPU time of that.

    ``cpu_s``: by router, the CPU time to handle the input that changed the graph.
    """

    changed_at: dict[str, float]
    cpu_s: dict[str, float]

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.changed_at, self.cpu_s = {}, {}
        self._epochs: dict[RouterNode, int] = {}
        super().__init__(*arguments, **settings)

    def on_step(self, node: Any) -> None:
        if isinstance(node, RouterNode) and node.epoch != self._epochs.get(node):
            self._epochs[node] = node.epoch
            self.changed_at[node.router_id] = self.now

    def arrive(self, pipe: Pipe, end: int, data: bytes) -> None:
        node = pipe.ends[end][0]
        if not isinstance(node, RouterNode):
            super().arrive(pipe, end, data)
            return
        began, epoch = time.thread_time(), node.epoch
        super().arrive(pipe, end, data)
        if node.epoch != epoch:
            known = self.cpu_s.get(node.router_id, 0.0)
            self.cpu_s[node.router_id] = known + time.thread_time() - began

    def kill(self, name: str) -> None:
        node = self.routers[name]
        super().kill(name)
        self._epochs.pop(node, None)
        self.changed_at.pop(name, None)

    def forget_changes(self) -> None:
        self.changed_at.clear()
        self.cpu_s.clear()

    def convergence(self, since: float) -> Convergence:
        last = max(self.changed_at.values(), default=None)
        return Convergence(None if last is None else last - since, tuple(self.wrong_pictures()))

    def truth(self) -> Any:
        """Return the graph that interior routers should know: running routers, uncut connections, and their costs."""
        interior = set(self.topology.interior_routers)
        costs = {frozenset({edge.dialer, edge.to}): edge.cost for edge in self.topology.edges()}
        graph = networkx.Graph()
        graph.add_nodes_from(sorted(interior & self.routers.keys()))
        for pair, pipe in self.trunks.items():
            if pair <= interior and pipe in self.pipes and not pipe.is_cut:
                graph.add_edge(*sorted(pair), cost=costs[pair])
        return graph

    def wrong_pictures(self) -> list[str]:
        graph, wrong = self.truth(), []
        for component in networkx.connected_components(graph):
            edges = {(min(a, b), max(a, b)): cost for a, b, cost in graph.edges(component, data="cost")}
            wrong += [name for name in sorted(component) if self.routers[name].edges() != edges]
        return wrong

    def path_cpu_s(self) -> list[float]:
        """Compute all paths of a sample of about 20 routers, and return the CPU time in s that this took for each."""
        graph, times = self.truth(), []
        for name in sorted(graph)[:: max(1, len(graph) // SAMPLE)]:
            began = time.thread_time()
            spf.shortest_paths(graph, name)
            times.append(time.thread_time() - began)
        return times
