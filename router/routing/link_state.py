"""The graph of the mesh: interior routers, the connections between them as edges, and the routers in reach.

Sans-IO. Holds the newest LSU of every router, including this one. An edge counts only if both ends report it, at the
larger of the two costs. The records of routers that stay out of reach are deleted after ``max_age_s``.

Always: ``reachable`` is the connected component of this router in ``graph``; every other router is in ``_lost_at``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from router.routing.actions import TopologyChanged
from router.routing.spf import Graph

_NO_EDGE: Mapping[str, int | None] = {"cost": None}


@dataclass(frozen=True, slots=True)
class LinkStateRecord:
    instance: int
    ls_seq: int
    peers: Mapping[str, int]

    def is_worse_than(self, before: LinkStateRecord | None) -> bool:
        """True if a neighbor in the older record ``before`` is lost, or the connection to one costs more now."""
        if before is None:
            return False
        return any(peer not in self.peers or self.peers[peer] > cost for peer, cost in before.peers.items())


class LinkState:
    def __init__(self, router_id: str, instance: int, max_age_s: float) -> None:
        self._router_id = router_id
        self._max_age_s = max_age_s
        self._lost_at: dict[str, float] = {}  # Router -> since when it is out of reach, the longest first.
        self.records: dict[str, LinkStateRecord] = {router_id: LinkStateRecord(instance, 0, {})}
        self._graph: Graph | None = None
        self.reachable: set[str] = {router_id}
        self.epoch = 0  # A counter, raised whenever the graph changes.

    @property
    def is_alone(self) -> bool:
        """Whether no other router was ever known here, so that there are no paths to find."""
        return self._graph is None

    @property
    def graph(self) -> Graph:
        """The graph of the routers, made at its first use: a router without others does without networkx's 11 MB."""
        if self._graph is None:
            import networkx

            self._graph = networkx.Graph()
            self._graph.add_node(self._router_id)
        return self._graph

    def version(self, router: str) -> tuple[int, int]:
        record = self.records.get(router)
        return (record.instance, record.ls_seq) if record else (0, 0)

    def update(self, records: Mapping[str, LinkStateRecord], now: float) -> TopologyChanged | None:
        """Replace the records of some routers by ``records``; return the change of the graph, None if there is none."""
        touched: dict[tuple[str, str], None] = {}
        for router, record in records.items():
            before = self.records.get(router)
            self.records[router] = record
            if router != self._router_id:
                self.graph.add_node(router)
            if router not in self.reachable:
                self._lost_at.pop(router, None)
                self._lost_at[router] = now
            peers = record.peers.keys() | (before.peers.keys() if before else ())
            touched |= dict.fromkeys((router, peer) for peer in peers)
        return self._recompute([edge for edge in touched if self._update_edge(*edge)], now)

    def _update_edge(self, router: str, peer: str) -> bool:
        """Update the edge between two routers in the graph; return True if it came, went or changed its cost."""
        was = self.graph.get_edge_data(router, peer, _NO_EDGE)["cost"]
        cost = self._edge_cost(router, peer)
        if cost == was:
            return False
        if cost is None:
            self.graph.remove_edge(router, peer)
        else:
            self.graph.add_edge(router, peer, cost=cost)
        return True

    def _edge_cost(self, router: str, peer: str) -> int | None:
        there = self.records.get(peer)
        if there is None or peer == router:
            return None
        own, reported = self.records[router].peers.get(peer), there.peers.get(router)
        return None if own is None or reported is None else max(own, reported)

    def _recompute(self, changed: list[tuple[str, str]], now: float) -> TopologyChanged | None:
        if not changed:
            return None
        self.epoch += 1
        # If no edge is lost, routers can only come in reach. So the search begins at the new edges, and does not go
        # through the whole graph for each LSU of a database exchange.
        if any(not self.graph.has_edge(*edge) for edge in changed):
            return self._change_reachable(self._walk({self._router_id}, set()), now)
        known = self.reachable
        starts = [end for one, other in changed for end, far in ((one, other), (other, one)) if far in known]
        if known.issuperset(starts):
            return TopologyChanged(frozenset(), frozenset())
        return self._change_reachable(self._walk(starts, known), now)

    def _walk(self, starts: Iterable[str], found: set[str]) -> set[str]:
        found = set(found)
        waiting = [router for router in starts if router not in found]
        found.update(waiting)
        while waiting:
            for peer in self.graph.adj[waiting.pop()]:
                if peer not in found:
                    found.add(peer)
                    waiting.append(peer)
        return found

    def _change_reachable(self, reachable: set[str], now: float) -> TopologyChanged:
        lost, gained = self.reachable - reachable, reachable - self.reachable
        self.reachable = reachable
        for router in gained:
            self._lost_at.pop(router, None)
        for router in sorted(lost):
            self._lost_at[router] = now
        return TopologyChanged(frozenset(lost), frozenset(gained))

    def cost_along(self, path: Sequence[str]) -> int | None:
        """Return the sum of the costs along ``path``, a list of routers, or None if an edge of ``path`` is gone."""
        hops = list(pairwise(path))
        if not all(self.graph.has_edge(*hop) for hop in hops):
            return None
        return sum(int(self.graph.edges[hop]["cost"]) for hop in hops)

    def is_worth_telling(self, router: str, now: float) -> bool:
        """True if a neighbor without the record of ``router`` should get the record from here.

        False once ``router`` has been out of reach for half of ``max_age_s``: routers delete the record at different
        moments, and would for ever get the record back from each other.
        """
        lost_at = self._lost_at.get(router)
        return lost_at is None or now < lost_at + self._max_age_s / 2

    def forget(self, now: float) -> list[str]:
        """Delete the records of routers that were out of reach for ``max_age_s``; return the ids of these routers."""
        forgotten: list[str] = []
        while (oldest := next(iter(self._lost_at), None)) and now >= self._lost_at[oldest] + self._max_age_s:
            del self._lost_at[oldest], self.records[oldest]
            self.graph.remove_node(oldest)
            forgotten.append(oldest)
        return forgotten

    def next_deadline(self) -> float | None:
        return next(iter(self._lost_at.values())) + self._max_age_s if self._lost_at else None
