"""Keep the branches of a multicast, the circuits to neighbors in a tree of routers with takers: the branches of this
router's own tree, and those that continue the trees of other ingresses.

The ingress, a router with producers, computes the tree and sends each neighbor the part behind that neighbor in the
spec of the branch. A router that receives a multicast circuit makes the branches named in the spec, for deliveries of
that circuit alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from router.circuits.circuits import Circuits
from router.circuits.spec import CircuitKind, CircuitSpec, Tree, path_lost, tree_of
from router.distribution.entries import AddressEntry
from router.distribution.reach import AddressReach
from router.distribution.upkeep import Upkeep
from router.forwarding.address import AddressGroup
from router.forwarding.ends import Inlet, Taker
from router.forwarding.multicast import Multicast
from router.timers import Timers
from wire.errors import AmqpError

NEWS_S = 0.5
"""Time by which an ingress has learned of a broken path from the link state."""


class Branches:
    """Makes, replaces and closes the branches of multicast addresses at this router."""

    def __init__(self, reach: AddressReach, circuits: Circuits, upkeep: Upkeep, timers: Timers) -> None:
        self._reach = reach
        self._circuits = circuits
        self._upkeep = upkeep
        self._timers = timers
        self._upstreams: dict[Inlet, CircuitSpec] = {}

    # Methods about this router's own tree, of which it is the ingress.
    def lacks_some(self, entry: AddressEntry) -> bool:
        """True if no branch exists yet of a kind that the entry's producers use.

        The kinds are the shared one and the one for pre-settled deliveries.
        """
        return len({kind for _, kind in entry.ends.branches}) < len(_kinds(entry.group))

    def settle(self, entry: AddressEntry) -> None:
        """Make the entry's branches match the present tree: open missing ones, leave or close outdated ones.

        Deliveries of producers at this router wait while branches are missing, for ``hold_s`` at most. Branches to edge
        routers here that continue the trees of other ingresses are opened and closed, too.
        """
        group = entry.group
        assert isinstance(group, Multicast)
        self._look_behind(entry)
        self._settle_edges(entry)
        group.begin_change()
        group.end_change(is_complete=self._settle_own(entry))

    def _settle_own(self, entry: AddressEntry) -> bool:
        """Make the branches of this router's own tree match the present tree; True if no branch is missing.

        False while a refused branch is not tried again yet, or the takers at other routers are not known yet. Without a
        producer, close the branches after 10 s, and return True.
        """
        has_producer = entry.has_producer
        if not has_producer and not entry.has_ends:
            return True
        wanted = {hop: tree_of(branch) for hop, branch in self._reach.routing.tree(self._reach.takers(entry)).items()}
        wanted |= {edge: {} for edge in self._reach.behind(entry)}
        self._look_at_left(entry)
        # Outdated branches are dropped also without producers: else a branch of a tree that broke, and is the same
        # again, would be taken for one that was never lost.
        spent = self._drop_others(entry, wanted)
        if not has_producer:
            for _, branch in list(entry.ends.branches.values()):
                self._upkeep.retire(entry, branch, at_once=False)
            return True
        keys = list(product(wanted, _kinds(entry.group)))
        for hop, kind in keys:
            if (hop, kind) in entry.ends.branches:
                _, branch = entry.ends.branches[hop, kind]
                self._upkeep.keep(entry, branch, is_needed=True)
            elif self._upkeep.may_try(entry, hop, wanted[hop]):
                self._add(entry, hop, kind, wanted[hop])
        for hop in spent:
            self._upkeep.on_refused(entry, hop, None, wanted[hop])
        return self._reach.is_known(entry) and all(key in entry.ends.branches for key in keys)

    def _is_spent(self, entry: AddressEntry, hop: str, tree: Tree, taker: Taker) -> bool:
        """True if the branch gave back a delivery that no consumer got, and may be made anew over the same tree.

        Deliveries of producers here wait as long as such a branch stays.
        """
        return taker.is_spent and self._upkeep.may_try(entry, hop, tree)

    def _drop_others(self, entry: AddressEntry, wanted: dict[str, Tree]) -> set[str]:
        """Close the branches that do not match the present tree, or leave (`_leave`) those that still lead to takers.

        Also close the branches that gave back a delivery that no consumer got and may be made anew. Return the next
        hops of these that the present tree still has: branches to them are to be made anew.
        """
        branches = entry.ends.branches
        spent = {key for key, (tree, taker) in branches.items() if self._is_spent(entry, key[0], tree, taker)}
        others = {key: tree for key, (tree, _) in branches.items() if key in spent or wanted.get(key[0]) != tree}
        for (hop, kind), tree in others.items():
            for taker in entry.ends.leave_branch(hop, kind):
                if (hop, kind) not in spent and self._leads_to_some(entry, hop, tree):
                    self._leave(entry, taker, hop, tree)
                else:
                    self._upkeep.retire(entry, taker, at_once=True)
                    entry.group.give_up_order_behind(taker)
        return {hop for hop, _ in spent} & wanted.keys()

    def _leave(self, entry: AddressEntry, taker: Taker, hop: str, tree: Tree) -> None:
        """Send no more deliveries over a branch that other branches replace, and close the branch once it is empty.

        Deliveries over the replacements wait until the old branch has passed on its deliveries.
        """
        entry.ends.left[taker] = (hop, tree)
        entry.group.leave_taker(taker)
        self._upkeep.leave(entry, taker)

    def _look_at_left(self, entry: AddressEntry) -> None:
        """Let deliveries no longer wait for earlier ones on replaced branches that lead to no takers now.

        Such a branch may never get credit for the barrier that asks about the earlier deliveries.
        """
        for taker, (hop, tree) in list(entry.ends.left.items()):
            if not self._leads_to_some(entry, hop, tree):
                del entry.ends.left[taker]
                entry.group.give_up_order_behind(taker)

    def _leads_to_some(self, entry: AddressEntry, hop: str, tree: Tree) -> bool:
        """True if the tree behind the next router ``hop`` still reaches routers with takers.

        These takers could get later deliveries over another branch before the earlier ones.
        """
        return not self._reach.takers(entry).isdisjoint(self._in_reach(self._reach.router_id, {hop: tree}))

    def _in_reach(self, router: str, tree: Tree) -> Iterator[str]:
        """Yield the routers of ``tree``, behind ``router``, that the connections along the tree still reach."""
        for onward, branch in tree.items():
            if self._reach.routing.cost_along((router, onward)) is not None:
                yield onward
                yield from self._in_reach(onward, branch)

    def _add(self, entry: AddressEntry, hop: str, kind: CircuitKind, tree: Tree) -> None:
        branch = self._open(entry.group, kind, hop, tree, self._reach.router_id, None)
        if branch is None:
            self._upkeep.on_refused(entry, hop, None, tree)
        else:
            branch.path = tree
            entry.ends.branches[hop, kind] = (tree, branch)

    def _open(
        self,
        group: AddressGroup,
        kind: CircuitKind,
        hop: str,
        tree: Tree,
        ingress: str,
        upstream: Inlet | None,
    ) -> Taker | None:
        router_id = self._reach.router_id
        spec = CircuitSpec(kind, group.address, ingress, path=(router_id, hop), tree=tree, priority=group.priority)
        try:
            link = self._circuits.sender(spec, hop)
        except AmqpError:
            return None
        is_own = ingress == router_id
        taker = Taker(
            link,
            group,
            cost=1 + _depth(tree),
            upstream=upstream,
            is_stream=is_own and kind is CircuitKind.MULTICAST_STREAM,
            is_for_settled=is_own and kind is CircuitKind.MULTICAST_SETTLED,
        )
        taker.edge = self._reach.edge_number(hop)
        link.open()
        group.add_taker(taker)
        return taker

    def streams(self, entry: AddressEntry, inlet: Inlet) -> list[Taker]:
        """Return the branches for large deliveries of ``inlet``: a stream beside each shared branch, opened if missing.

        A branch to the edge router from which the inlet's deliveries come has no stream. A stream that cannot be made
        now is left out.
        """
        shared = [(hop, branch) for (hop, _), branch in entry.ends.branches.items()]
        trees = {hop: tree for hop, (tree, taker) in shared if not inlet.shuns or taker.edge != inlet.shuns}
        for hop, tree in trees.items():
            if (hop, inlet) not in entry.ends.streams:
                kind, router_id = CircuitKind.MULTICAST_STREAM, self._reach.router_id
                taker = self._open(entry.group, kind, hop, tree, router_id, inlet)
                if taker is not None:
                    entry.ends.streams[hop, inlet] = taker
        return [taker for (hop, owner), taker in entry.ends.streams.items() if owner is inlet and hop in trees]

    # Methods about the trees of other ingress routers, which pass through this router.
    def pass_on(self, group: AddressGroup, spec: CircuitSpec, upstream: Inlet) -> None:
        """Open the branches that continue the tree of another ingress behind this router, as ``spec`` says.

        ``upstream``: the circuit from the ingress, whose deliveries go to these branches only. Branches to edge routers
        at this router are added when the entry is settled. If a branch cannot be opened, the ingress has to make a new
        tree (`_on_cut`).
        """
        self._upstreams[upstream] = spec
        for hop, tree in spec.tree.items():
            branch = self._open(group, spec.kind, hop, tree, spec.ingress, upstream)
            if branch is not None:
                branch.behind = frozenset(_routers(hop, tree))
            else:
                self._on_cut(group, upstream)

    def _settle_edges(self, entry: AddressEntry) -> None:
        """Open the branches that continue other ingresses' trees to the edge routers here that take the address.

        Branches to edge routers that no longer take the address are closed.
        """
        takers = [taker for taker in entry.group.takers if taker.edge and taker.upstream is not None]
        edges = self._edges_behind(entry)
        for taker in takers:
            if taker.upstream in self._upstreams:
                self._upkeep.keep(entry, taker, is_needed=taker.edge in edges)
        if not edges:
            return
        have = {(taker.upstream, taker.edge) for taker in takers}
        for inlet in [inlet for inlet in entry.group.inlets if inlet.is_circuit and inlet in self._upstreams]:
            spec = self._upstreams[inlet]
            for number, edge in edges.items():
                if (inlet, number) not in have and self._upkeep.may_try(entry, edge, {}):
                    self._open(entry.group, spec.kind, edge, {}, spec.ingress, inlet)

    def _edges_behind(self, entry: AddressEntry) -> dict[int, str]:
        return {self._reach.edge_number(edge): edge for edge in sorted(self._reach.behind(entry))}

    def on_lost(self, entry: AddressEntry, group: AddressGroup, branch: Taker, error: AmqpError) -> None:
        """Handle the loss of a branch that continues the tree of another ingress.

        A branch to an edge router may be made again after a delay; after any other loss, the ingress has to make a new
        tree (`_on_cut`). Any other taker is no such branch.
        """
        if branch.upstream is None:
            return
        edge = self._edges_behind(entry).get(branch.edge)
        if edge is not None:
            self._upkeep.on_refused(entry, edge, error, {})
        if branch.behind is not None:
            self._on_cut(group, branch.upstream)

    def _on_cut(self, group: AddressGroup, upstream: Inlet) -> None:
        """Watch inlet ``upstream``, whose tree lost a branch here: the ingress should learn that, and make a new tree.

        The circuit of the inlet stays meanwhile, so that its deliveries may still get their outcomes. If deliveries go
        on coming over it, the circuit is ended with an error (`_watch_cut`).
        """
        self._timers.after(NEWS_S, lambda: self._watch_cut(group, upstream, upstream.deliveries_in))

    def _watch_cut(self, group: AddressGroup, upstream: Inlet, count: int) -> None:
        """End the circuit of inlet ``upstream`` if more than ``count`` deliveries came, else look again later.

        The ingress still sends over the cut tree if the path healed before the ingress noticed and made a new tree.
        """
        if upstream not in group.inlets or upstream.link.has_left:
            return
        if upstream.deliveries_in != count:
            upstream.expel(path_lost(f"router {self._reach.router_id} lost a branch of {group.address.name!r}"))
        else:
            self._timers.after(NEWS_S, lambda: self._watch_cut(group, upstream, count))

    def _look_behind(self, entry: AddressEntry) -> None:
        """Mark as deserted the branches that continue other ingresses' trees and lead to no takers now.

        No delivery waits for a deserted branch; the ingress of the tree closes the branch.
        """
        passed_on = [taker for taker in entry.group.takers if taker.behind is not None]
        takers = self._reach.takers(entry) if passed_on else frozenset()
        for taker in passed_on:
            taker.is_deserted = takers.isdisjoint(taker.behind or ())
        if any(taker.is_deserted for taker in passed_on):
            entry.group.go_on()

    def close(self, group: AddressGroup, upstream: Inlet) -> None:
        """Close the branches that continue the circuit of ``upstream``, an inlet that is gone."""
        self._upstreams.pop(upstream, None)
        for taker in [taker for taker in group.takers if taker.upstream is upstream]:
            taker.on_left(True, None)


def _kinds(group: AddressGroup) -> tuple[CircuitKind, ...]:
    """Return the kinds of branches that the producers of ``group`` share.

    Pre-settled deliveries have branches of their own once a producer has sent one.
    """
    is_apart = isinstance(group, Multicast) and group.is_settled_apart
    return (CircuitKind.MULTICAST, CircuitKind.MULTICAST_SETTLED) if is_apart else (CircuitKind.MULTICAST,)


def _routers(hop: str, tree: Tree) -> Iterator[str]:
    yield hop
    for onward, branch in tree.items():
        yield from _routers(onward, branch)


def _depth(tree: Tree) -> int:
    """Return the depth of ``tree``: the most routers in line behind its root."""
    return max((1 + _depth(branch) for branch in tree.values()), default=0)
