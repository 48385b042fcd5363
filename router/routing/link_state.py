"""Which routers and edges are there, and which of them can be reached?

Sans-IO. Holds the newest LSU of every router, its own included. An edge counts only if both ends report it, at the
larger of their two costs. Routers that stay out of reach are forgotten after ``max_age_s``.

Always: ``reachable`` is the connected component of this router in ``graph``; every other record is in ``_lost_at``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import networkx

from router.routing.actions import TopologyChanged
from router.routing.spf import Graph


@dataclass(frozen=True, slots=True)
class LinkStateRecord:
    instance: int
    ls_seq: int
    peers: Mapping[str, int]


class LinkState:
    def __init__(self, router_id: str, instance: int, max_age_s: float) -> None:
        self._router_id = router_id
        self._max_age_s = max_age_s
        self._lost_at: dict[str, float] = {}  # longest out of reach first
        self.records: dict[str, LinkStateRecord] = {router_id: LinkStateRecord(instance, 0, {})}
        self.graph: Graph = networkx.Graph()
        self.graph.add_node(router_id)
        self.reachable: set[str] = {router_id}
        self.epoch = 0  # raised when the graph changes

    def version(self, router: str) -> tuple[int, int]:
        record = self.records.get(router)
        return (record.instance, record.ls_seq) if record else (0, 0)

    def update(self, router: str, record: LinkStateRecord, now: float) -> TopologyChanged | None:
        """Replace what is known of ``router``; return what that did to the graph, None if nothing."""
        before = self.records.get(router)
        self.records[router] = record
        self.graph.add_node(router)
        if router not in self.reachable:
            self._lost_at.pop(router, None)
            self._lost_at[router] = now
        touched = record.peers.keys() | (before.peers.keys() if before else ())
        return self._recompute(router, [peer for peer in touched if self._update_edge(router, peer)], now)

    def _update_edge(self, router: str, peer: str) -> bool:
        """Whether the edge appeared, went or changed its cost."""
        was = self.graph.edges[router, peer]["cost"] if self.graph.has_edge(router, peer) else None
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

    def _recompute(self, router: str, changed: list[str], now: float) -> TopologyChanged | None:
        if not changed:
            return None
        self.epoch += 1
        ends = {router, *changed}
        # One more edge only adds routers: no need to walk the whole graph for each LSU of a database exchange.
        has_lost_edge = any(not self.graph.has_edge(router, peer) for peer in changed)
        if has_lost_edge:
            return self._change_reachable(self._walk({self._router_id}, set()), now)
        known = ends & self.reachable
        found = self._walk(ends, self.reachable) if known else self.reachable
        return self._change_reachable(found, now)

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

    def is_worth_telling(self, router: str, now: float) -> bool:
        """Whether a neighbor that lacks ``router`` should learn of it.

        Not what has been out of reach for long: neighbors that forget at different moments would revive it for ever.
        """
        lost_at = self._lost_at.get(router)
        return lost_at is None or now < lost_at + self._max_age_s / 2

    def forget(self, now: float) -> list[str]:
        """Drop the routers out of reach for too long."""
        forgotten: list[str] = []
        while (oldest := next(iter(self._lost_at), None)) and now >= self._lost_at[oldest] + self._max_age_s:
            del self._lost_at[oldest], self.records[oldest]
            self.graph.remove_node(oldest)
            forgotten.append(oldest)
        return forgotten

    def next_deadline(self) -> float | None:
        return next(iter(self._lost_at.values())) + self._max_age_s if self._lost_at else None
