"""The routers elsewhere that have takers for an address, and the paths to them.

Routers advertise takers to each other by routing keys (`addressing.routing_keys`).
"""

from __future__ import annotations

from addressing.address import is_open, router_of
from addressing.book import AddressPolicy
from addressing.routing_keys import broker_key, edge_key
from router.connections.brokers import Brokers
from router.distribution.entries import AddressEntry
from router.routing.edges import EdgeRouters
from router.routing.messages import ReachLevel
from router.routing.plane import Plane

MAX_CIRCUITS = 8
FALLBACK_PHASE = 2
"""Phase of circuits to the first broker of an address's fallback; the next broker's phase is one higher."""


def fallback_phase(queue: AddressPolicy, broker: str) -> int:
    return FALLBACK_PHASE + queue.brokers.index(broker)


class AddressReach:
    """Link state in terms of addresses. ``known_edges``: the edge routers of the mesh."""

    is_edge = False

    def __init__(
        self,
        router_id: str,
        routing: Plane,
        brokers: Brokers,
        edges: EdgeRouters | None = None,
        known_edges: frozenset[str] = frozenset(),
    ) -> None:
        self.router_id = router_id
        self.routing = routing
        self._brokers = brokers
        self._edges = edges
        self._known_edges = known_edges

    # How addresses are divided into phases
    def consumer_phase(self, policy: AddressPolicy) -> int:
        """Consumers of a sharded queue are in another phase than its producers."""
        return policy.consumer_phase

    def arrival_phase(self, policy: AddressPolicy, phase: int) -> int:
        """Return the phase of the group for circuits that arrive with ``phase``."""
        return phase

    def told_key(self, entry: AddressEntry) -> str:
        """Return the key by which other routers know of takers here."""
        return entry.key

    def is_told(self, entry: AddressEntry) -> bool:
        """True if other routers know of takers here only from an advertised key."""
        policy, phase = entry.policy, entry.group.phase
        ends_at_brokers = policy.ends_at_brokers(phase) or phase >= FALLBACK_PHASE
        if router_of(policy.address):
            return is_open(policy.address) and not self.owns(policy.address)
        return not ends_at_brokers

    def may_fall_back(self, policy: AddressPolicy) -> bool:
        """True if this router, as an ingress, decides on the fallback."""
        return bool(policy.fallback)

    def follow(self, entry: AddressEntry) -> None:
        """The takers elsewhere may matter for this entry; an interior router knows them without asking."""

    def forget(self, entry: AddressEntry) -> None:
        """The takers elsewhere no longer matter for this entry."""

    # Edge routers whose active uplink is this router
    def behind(self, entry: AddressEntry) -> frozenset[str]:
        """Return the edge routers that take the entry's address."""
        return self._edges.taking(entry.key) if self._edges is not None else frozenset()

    def ways_behind(self, entry: AddressEntry) -> dict[str, tuple[str, ...]]:
        return {edge: (self.router_id, edge) for edge in sorted(self.behind(entry))}

    def edge_number(self, router: str) -> int:
        """Return the number of the connection to this edge; 0 if ``router`` is not an active edge here."""
        return (self._edges.connection(router) if self._edges is not None else None) or 0

    def owns(self, address: str) -> bool:
        """True for a dynamic address of this router, or of an edge router active here."""
        owner = router_of(address)
        return owner is not None and (owner == self.router_id or bool(self.edge_number(owner)))

    def path(self, router: str) -> tuple[str, ...] | None:
        return (self.router_id, router) if self.edge_number(router) else self.routing.path(router)

    def level(self, entry: AddressEntry, edge: str) -> ReachLevel:
        """Return the answer for ``edge``, which asked: whether takers other than the edge itself exist."""
        # With a fallback, deliveries may return to the edge they came from: see `EdgeReach.consumer_phase`.
        others = self.behind(entry) - (frozenset() if entry.policy.fallback else {edge})
        is_kept = entry.group.phase == 0 and any(self._brokers.is_up(broker) for broker in entry.policy.brokers)
        if others or is_kept or self._has_local(entry) or self.cheapest(self.takers(entry)):
            return ReachLevel.TAKEN
        return ReachLevel.ANNOUNCED if self.is_announced(entry) else ReachLevel.NONE

    @staticmethod
    def _has_local(entry: AddressEntry) -> bool:
        return any(taker.cost == 0 and not taker.is_closing for taker in entry.group.takers)

    def takers(self, entry: AddressEntry) -> frozenset[str]:
        """Return the routers to which a circuit of this address could go, whether reachable or not."""
        policy, phase = entry.policy, entry.group.phase
        owner = router_of(policy.address)
        if owner in self._known_edges:
            found = self.routing.routers_with(edge_key(owner))
        elif owner is not None:
            found = frozenset({owner})
        elif policy.ends_at_brokers(phase):
            found = frozenset().union(*(self.routing.routers_with(broker_key(broker)) for broker in policy.brokers))
        else:
            found = self.routing.routers_with(entry.key)
        if owner is not None and is_open(policy.address):
            found |= self.routing.routers_with(entry.key)
        return found - {self.router_id}

    def is_taken_elsewhere(self, policy: AddressPolicy) -> bool:
        """True if another router advertises consumers of an open dynamic address."""
        return is_open(policy.address) and bool(self.routing.routers_with(policy.key(0).text) - {self.router_id})

    def ways(self, entry: AddressEntry) -> dict[str, tuple[str, ...]]:
        """Return the routers that circuits of this address should go to, with the paths.

        Only one path is used to each broker, or the deliveries of one producer would arrive in any order: directly if
        the broker is connected here, else over the cheapest router connected to the broker.
        """
        policy = entry.policy
        if not policy.ends_at_brokers(entry.group.phase):
            return self.cheapest(self.takers(entry))
        ways: dict[str, tuple[str, ...]] = {}
        for broker in policy.brokers:
            if not self._brokers.is_up(broker):
                ways |= self.cheapest(self.routing.routers_with(broker_key(broker)), most=1)
        return ways

    def is_taken(self, entry: AddressEntry) -> bool:
        """True if the address has takers here or at a router in reach."""
        is_local = any(taker.cost == 0 for taker in entry.group.takers)
        return is_local or bool(self.behind(entry)) or bool(self.cheapest(self.takers(entry)))

    def is_known(self, entry: AddressEntry) -> bool:
        """True once the takers elsewhere are known; at an edge router the answer takes a moment."""
        return True

    def is_announced(self, entry: AddressEntry) -> bool:
        takers = self.takers(entry)
        owner = router_of(entry.policy.address)
        if self.behind(entry):
            return True
        if owner in self._known_edges:
            # Unless the edge is active here: until then the edge may be changing its uplink.
            return not self.edge_number(owner)
        # A dynamic address announces itself, even if its router is gone or never existed.
        return bool(self.cheapest(takers) if owner else takers)

    def cheapest(self, routers: frozenset[str], most: int = MAX_CIRCUITS) -> dict[str, tuple[str, ...]]:
        """Return the paths to the cheapest ``most`` of ``routers`` in reach."""
        reachable = [(cost, router) for router in routers if (cost := self.routing.cost_to(router)) is not None]
        paths = {router: self.routing.path(router) for _, router in sorted(reachable)[:most]}
        return {router: path for router, path in paths.items() if path is not None}

    def shards(self, queue: AddressPolicy) -> set[str]:
        """Return the other routers in reach that are connected to a broker of this queue."""
        routers = set().union(*(self.routing.routers_with(broker_key(broker)) for broker in queue.brokers))
        return {router for router in routers - {self.router_id} if self.routing.cost_to(router) is not None}

    def keeper_of(self, broker: str) -> str | None:
        """Return the router over which all deliveries fall back to this broker: the first by id of all connected."""
        connected = self.routing.routers_with(broker_key(broker))
        return min(connected | {self.router_id} if self._brokers.is_up(broker) else connected, default=None)
