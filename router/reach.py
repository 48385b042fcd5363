"""Where else does an address have takers, and what is the way there?

Keys that routers advertise to each other: M<phase><address> takers of an anycast or sharded queue, X0<address> takers
of a multicast, P0<address> producers of a multicast, B:<broker> a broker that the router is connected to, E:<edge> an
edge router whose active uplink it is, F0<address> its fallback may hold messages, F1<address> and hardly any, so that
producers had better wait a moment. Edge routers tell theirs, and ask for others, in the first two forms.
"""

from __future__ import annotations

from addressing.address import is_open, router_of
from addressing.book import AddressKind, AddressPolicy
from router.brokers import Brokers
from router.entries import Entry
from router.routing.edges import Edges
from router.routing.messages import Level
from router.routing.plane import Plane

MAX_CIRCUITS = 8
FALLBACK_PHASE = 2
"""Of circuits that lead to the first broker of an address's fallback; the next broker's is one higher."""


def key_of(entry: Entry) -> str:
    """What a router advertises that has takers for it."""
    return key_for(entry.policy, entry.group.phase)


def key_for(policy: AddressPolicy, phase: int) -> str:
    letter = "X" if policy.kind is AddressKind.MULTICAST else "M"
    return f"{letter}{phase}{policy.address}"


def phase_in(key: str) -> int | None:
    """The phase of the group that a key of an address concerns; None for a key of a form that is not known here."""
    if key[:1] == "F":
        return 0
    digit = key[1:2]
    return int(digit) if key[:1] in ("M", "P", "X") and digit.isascii() and digit.isdigit() else None


def producer_key(policy: AddressPolicy) -> str:
    """What a router advertises that has producers of a multicast."""
    return f"P0{policy.address}"


def edge_key(edge: str) -> str:
    return f"E:{edge}"


def broker_key(broker: str) -> str:
    return f"B:{broker}"


def fallback_phase(queue: AddressPolicy, broker: str) -> int:
    return FALLBACK_PHASE + queue.brokers.index(broker)


def fallback_keys(address: str) -> tuple[str, str]:
    """(may hold messages, hold on)"""
    return f"F0{address}", f"F1{address}"


class Reach:
    """What the link state says, in terms of addresses. ``known_edges``: the edge routers of the mesh."""

    is_edge = False

    def __init__(
        self,
        router_id: str,
        routing: Plane,
        brokers: Brokers,
        edges: Edges | None = None,
        known_edges: frozenset[str] = frozenset(),
    ) -> None:
        self.router_id = router_id
        self.routing = routing
        self._brokers = brokers
        self._edges = edges
        self._known_edges = known_edges

    # How addresses are divided
    def consumer_phase(self, policy: AddressPolicy) -> int:
        """Consumers of a sharded queue are apart from those who send to it."""
        return 1 if policy.is_sharded else 0

    def arrival_phase(self, policy: AddressPolicy, phase: int) -> int:
        """Of the group for circuits of this phase."""
        return phase

    def told_key(self, entry: Entry) -> str:
        """By which the others know of takers here."""
        return key_of(entry)

    def is_told(self, entry: Entry) -> bool:
        """The others do not know of takers here without being told."""
        policy, phase = entry.policy, entry.group.phase
        is_stored = (policy.kind.is_stored and phase == 0) or phase >= FALLBACK_PHASE
        if router_of(policy.address):
            return is_open(policy.address) and not self.owns(policy.address)
        return not is_stored

    def may_fall_back(self, policy: AddressPolicy) -> bool:
        """This router, as an ingress, decides on it."""
        return bool(policy.fallback)

    def follow(self, entry: Entry) -> None:
        """It may be of interest who takes it elsewhere."""

    def forget(self, entry: Entry) -> None:
        """It is not any more."""

    # Edge routers whose active uplink this is
    def behind(self, entry: Entry) -> frozenset[str]:
        """Those that take it."""
        return self._edges.taking(key_of(entry)) if self._edges is not None else frozenset()

    def ways_behind(self, entry: Entry) -> dict[str, tuple[str, ...]]:
        return {edge: (self.router_id, edge) for edge in sorted(self.behind(entry))}

    def edge_number(self, router: str) -> int:
        """Of the connection to this edge; 0 if it is none of these."""
        return (self._edges.connection(router) if self._edges is not None else None) or 0

    def owns(self, address: str) -> bool:
        """A dynamic address of this router, or of an edge of its own."""
        owner = router_of(address)
        return owner is not None and (owner == self.router_id or bool(self.edge_number(owner)))

    def path(self, router: str) -> tuple[str, ...] | None:
        return (self.router_id, router) if self.edge_number(router) else self.routing.path(router)

    def level(self, entry: Entry, edge: str) -> Level:
        """What this edge is to know of an address that it asked for: whether others than it take it."""
        # What falls back may go back to where it came from: see `EdgeReach.consumer_phase`.
        others = self.behind(entry) - (frozenset() if entry.policy.fallback else {edge})
        is_kept = entry.group.phase == 0 and any(self._brokers.is_up(broker) for broker in entry.policy.brokers)
        if others or is_kept or self._has_local(entry) or self.cheapest(self.takers(entry)):
            return Level.TAKEN
        return Level.ANNOUNCED if self.is_announced(entry) else Level.NONE

    @staticmethod
    def _has_local(entry: Entry) -> bool:
        return any(taker.cost == 0 and not taker.is_closing for taker in entry.group.takers)

    def takers(self, entry: Entry) -> frozenset[str]:
        """Routers to which a circuit of this address could go, whether reachable or not."""
        policy, phase = entry.policy, entry.group.phase
        owner = router_of(policy.address)
        if owner in self._known_edges:
            found = self.routing.routers_with(edge_key(owner))
        elif owner is not None:
            found = frozenset({owner})
        elif policy.kind.is_stored and phase == 0:
            found = frozenset().union(*(self.routing.routers_with(broker_key(broker)) for broker in policy.brokers))
        else:
            found = self.routing.routers_with(key_of(entry))
        if owner is not None and is_open(policy.address):
            found |= self.routing.routers_with(key_of(entry))
        return found - {self.router_id}

    def is_taken_elsewhere(self, policy: AddressPolicy) -> bool:
        """Of an open dynamic address: another router says that it has consumers."""
        return is_open(policy.address) and bool(self.routing.routers_with(key_for(policy, 0)) - {self.router_id})

    def ways(self, entry: Entry) -> dict[str, tuple[str, ...]]:
        """The routers that circuits of this address should go to, with the paths there.

        To a broker only one way is used, or what one producer sends would come there in any order: from here if it is
        connected here, else over the cheapest router that it is connected to.
        """
        policy = entry.policy
        if not policy.kind.is_stored or entry.group.phase != 0:
            return self.cheapest(self.takers(entry))
        ways: dict[str, tuple[str, ...]] = {}
        for broker in policy.brokers:
            if not self._brokers.is_up(broker):
                ways |= self.cheapest(self.routing.routers_with(broker_key(broker)), most=1)
        return ways

    def is_taken(self, entry: Entry) -> bool:
        """Somebody takes it, here or at a router in reach."""
        is_local = any(taker.cost == 0 for taker in entry.group.takers)
        return is_local or bool(self.behind(entry)) or bool(self.cheapest(self.takers(entry)))

    def is_known(self, entry: Entry) -> bool:
        """Whether it has been told who takes from it: at an edge that takes a moment."""
        return True

    def is_announced(self, entry: Entry) -> bool:
        takers = self.takers(entry)
        owner = router_of(entry.policy.address)
        if self.behind(entry):
            return True
        if owner in self._known_edges:
            # Until it is here: it may be changing its uplink.
            return not self.edge_number(owner)
        # A dynamic address announces itself, also when its router is gone or never was.
        return bool(self.cheapest(takers) if owner else takers)

    def cheapest(self, routers: frozenset[str], most: int = MAX_CIRCUITS) -> dict[str, tuple[str, ...]]:
        """The paths to those of them that are worth a circuit."""
        reachable = [(cost, router) for router in routers if (cost := self.routing.cost_to(router)) is not None]
        paths = {router: self.routing.path(router) for _, router in sorted(reachable)[:most]}
        return {router: path for router, path in paths.items() if path is not None}

    def shards(self, queue: AddressPolicy) -> set[str]:
        """The other routers in reach that a broker of this queue is connected to."""
        routers = set().union(*(self.routing.routers_with(broker_key(broker)) for broker in queue.brokers))
        return {router for router in routers - {self.router_id} if self.routing.cost_to(router) is not None}

    def keeper_of(self, broker: str) -> str | None:
        """The router over which all goes that falls back to this broker: of those connected to it, the first by id."""
        connected = self.routing.routers_with(broker_key(broker))
        return min(connected | {self.router_id} if self._brokers.is_up(broker) else connected, default=None)
