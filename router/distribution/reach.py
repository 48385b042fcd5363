"""The reach of an address: the other routers that have takers (consumers or brokers) for the address, and the paths to
these routers.

Routers advertise takers to each other by routing keys (`addressing.routing_keys`).
"""

from __future__ import annotations

from addressing.address import Address, is_open, router_of
from addressing.book import AddressPolicy
from addressing.routing_keys import broker_key, edge_key
from router.connections.brokers import Brokers
from router.distribution.entries import AddressEntry
from router.forwarding.filter_group import MatchedMulticast
from router.routing.edges import EdgeRouters
from router.routing.messages import ReachLevel
from router.routing.plane import Plane

MAX_CIRCUITS = 8
FALLBACK_PHASE = 2
"""Phase of circuits to the first broker of an address's fallback queue; each further broker's phase is one higher."""


def fallback_phase(queue: AddressPolicy, broker: str) -> int:
    return FALLBACK_PHASE + queue.brokers.index(broker)


class AddressReach:
    """Answers which other routers have takers for an address, and over which paths, from the link state.

    This class is for interior routers; `EdgeReach` is for edge routers.

    ``edges``: the edge routers whose active uplink leads to this router. ``known_edges``: the names of all edge routers
    of the mesh.
    """

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

    # Methods that say which phase (group of takers) of an address is meant.
    def consumer_phase(self, policy: AddressPolicy) -> int:
        """Return the phase of the group that consumers join: for a sharded queue 1, not 0 as for its producers."""
        return policy.consumer_phase

    def arrival_phase(self, policy: AddressPolicy, phase: int) -> int:
        """Return the phase of the group here that an arriving circuit joins: at an interior router ``phase``, from the
        spec.
        """
        return phase

    def told_key(self, entry: AddressEntry) -> str:
        """Return the routing key by which this router tells other routers that the entry has takers here."""
        return entry.key

    def is_told(self, entry: AddressEntry) -> bool:
        """True if this router has to advertise a routing key for the entry's takers and producers here.

        No key is needed for a dynamic address, which names its router, unless it is open and of another router; and
        none for takers that are brokers, since connections to brokers have keys of their own.
        """
        policy, phase = entry.policy, entry.group.phase
        ends_at_brokers = policy.ends_at_brokers(phase) or phase >= FALLBACK_PHASE
        if entry.owner:
            return is_open(policy.address.name) and not self.owns(policy.address)
        return not ends_at_brokers

    def may_fall_back(self, policy: AddressPolicy) -> bool:
        """True if the address has a fallback queue and this router, as an ingress, decides when the queue is used."""
        return bool(policy.fallback)

    def follow(self, entry: AddressEntry) -> None:
        """Ask whether other routers have takers for the entry, if the entry has a producer.

        An interior router does nothing, since the link state tells; an edge router asks its uplink.
        """

    def forget(self, entry: AddressEntry) -> None:
        """End the question that `follow` asked for the entry, now that the entry is dropped."""

    # Methods about the edge routers whose active uplink is this router, here called the edge routers behind it
    def behind(self, entry: AddressEntry) -> frozenset[str]:
        """Return the edge routers behind this router that have takers for the entry's address."""
        found = self.behind_by_key(entry)
        if entry.filter_keys and self._edges is not None:
            found = found.union(*(self._edges.taking(key) for key in entry.filter_keys))
        return found

    def behind_by_key(self, entry: AddressEntry) -> frozenset[str]:
        """Return the edge routers behind this router that advertise the entry's own routing key.

        Edge routers that only have consumers of a matching filter are left out.
        """
        return self._edges.taking(entry.key) if self._edges is not None else frozenset()

    def is_advertised(self, key: str) -> bool:
        """True if another router, in reach or not, or an edge router behind this one advertises the routing key."""
        return self.routing.is_advertised(key) or (self._edges is not None and bool(self._edges.taking(key)))

    def ways_behind(self, entry: AddressEntry) -> dict[str, tuple[str, ...]]:
        return {edge: (self.router_id, edge) for edge in sorted(self.behind(entry))}

    def edge_number(self, router: str) -> int:
        """Return the number of the connection to edge router ``router``; 0 if it does not use this router as uplink."""
        return (self._edges.connection(router) if self._edges is not None else None) or 0

    def owns(self, address: Address) -> bool:
        """True for a dynamic address of this router, or of an edge router whose active uplink is this router."""
        owner = router_of(address.name)
        return owner is not None and (owner == self.router_id or bool(self.edge_number(owner)))

    def path(self, router: str) -> tuple[str, ...] | None:
        return (self.router_id, router) if self.edge_number(router) else self.routing.path(router)

    def level(self, entry: AddressEntry, edge: str) -> ReachLevel:
        """Return the answer to edge router ``edge``, which asked whether others than itself take the address.

        TAKEN: takers can be reached; ANNOUNCED: takers are known, but not in reach now; NONE: no takers are known.
        Takers at ``edge`` itself count, too, if the address has a fallback queue.
        """
        # Deliveries of an address with a fallback queue may return to the edge router they came from, so the consumers
        # of that edge router count (see `EdgeReach.consumer_phase`).
        others = self.behind(entry) - (frozenset() if entry.policy.fallback else {edge})
        is_kept = entry.group.phase == 0 and any(self._brokers.is_up(broker) for broker in entry.policy.brokers)
        if others or is_kept or entry.has_set_here or self._has_local(entry) or self.cheapest(self.takers(entry)):
            return ReachLevel.TAKEN
        return ReachLevel.ANNOUNCED if self.is_announced(entry) else ReachLevel.NONE

    @staticmethod
    def _has_local(entry: AddressEntry) -> bool:
        group = entry.group
        if isinstance(group, MatchedMulticast) and group.filter_takers:
            return True
        return any(taker.cost == 0 and not taker.is_closing for taker in group.takers)

    def takers(self, entry: AddressEntry) -> frozenset[str]:
        """Return the other routers with takers for the entry's address, to which a circuit could go.

        The interior router that a dynamic address names counts as one, whether it exists or not, and in reach or not;
        if the address names an edge router, the routers that advertise that edge router count instead.
        """
        policy, phase = entry.policy, entry.group.phase
        owner = entry.owner
        if entry.group.egress is not None:
            return frozenset({entry.group.egress})
        if owner is not None and owner in self._known_edges:
            found = self.routing.routers_with(edge_key(owner))
        elif owner is not None:
            found = frozenset({owner})
        elif policy.ends_at_brokers(phase):
            found = frozenset().union(*(self.routing.routers_with(broker_key(broker)) for broker in policy.brokers))
        else:
            found = self.routing.routers_with(entry.key)
            if entry.filter_keys:
                found = found.union(*(self.routing.routers_with(key) for key in entry.filter_keys))
        if owner is not None and is_open(policy.address.name):
            found |= self.routing.routers_with(entry.key)
        return found - {self.router_id}

    def sole_egress(self, policy: AddressPolicy) -> str | None:
        """Return the only router with takers of the anycast address, which is another router in reach.

        None if there are none or several, or takers at edge routers behind this router.
        """
        key = policy.key(0).text
        found = self.routing.routers_with(key)
        if len(found) != 1 or (self._edges is not None and self._edges.taking(key)):
            return None
        (egress,) = found
        return egress

    def is_taken_elsewhere(self, policy: AddressPolicy) -> bool:
        """True if the address is an open dynamic one, and another router in reach advertises consumers of it."""
        return is_open(policy.address.name) and bool(self.routing.routers_with(policy.key(0).text) - {self.router_id})

    def ways(self, entry: AddressEntry) -> dict[str, tuple[str, ...]]:
        """Return the routers to which this router should have circuits for the entry's address, with the paths.

        To each broker that is not connected to this router, circuits go only over the cheapest router connected to the
        broker: over several, the deliveries of one producer would arrive in any order.
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
        """True if the entry's address has takers here, at an edge router behind this one, or at a router in reach."""
        return self._has_local(entry) or bool(self.behind(entry)) or bool(self.cheapest(self.takers(entry)))

    def is_known(self, entry: AddressEntry) -> bool:
        """True once this router knows whether other routers have takers for the entry.

        An interior router always knows; an edge router knows after its uplink's answer, or while it has no uplink.
        """
        return True

    def is_announced(self, entry: AddressEntry) -> bool:
        if self.behind(entry):
            return True
        takers = self.takers(entry)
        owner = entry.owner
        if owner in self._known_edges:
            # The dynamic address names an edge router. An edge router whose uplink is this router would be in `behind`
            # if it had takers, so its address does not count as announced. Any other edge router may be changing its
            # uplink just now, so its address counts.
            return not self.edge_number(owner)
        # The router that a dynamic address names is among the takers even if gone or made up. So the address counts as
        # announced only if that router is in reach.
        return bool(self.cheapest(takers) if owner else takers)

    def cheapest(self, routers: frozenset[str], most: int = MAX_CIRCUITS) -> dict[str, tuple[str, ...]]:
        """Return the paths to those of ``routers`` that are in reach, by router: to the ``most`` cheapest at most."""
        if not routers:
            return {}
        reachable = [(cost, router) for router in routers if (cost := self.routing.cost_to(router)) is not None]
        paths = {router: self.routing.path(router) for _, router in sorted(reachable)[:most]}
        return {router: path for router, path in paths.items() if path is not None}

    def shards(self, queue: AddressPolicy) -> set[str]:
        """Return the other routers in reach that are connected to at least one broker of the sharded ``queue``."""
        routers = set().union(*(self.routing.routers_with(broker_key(broker)) for broker in queue.brokers))
        return {router for router in routers - {self.router_id} if self.routing.cost_to(router) is not None}

    def keeper_of(self, broker: str) -> str | None:
        """Return the keeper of ``broker``: the router over which all deliveries of fallback queues reach the broker.

        The keeper is the first by id of the routers connected to the broker: all routers in reach, and this one. None
        if none is connected.
        """
        connected = self.routing.routers_with(broker_key(broker))
        return min(connected | {self.router_id} if self._brokers.is_up(broker) else connected, default=None)
