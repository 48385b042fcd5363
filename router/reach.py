"""Where else does an address have takers, and what is the way there?

Keys that routers advertise to each other: M<phase><address> takers of an anycast or sharded queue, X0<address> takers
of a multicast, B:<broker> a broker that the router is connected to, F0<address> its fallback may hold messages,
F1<address> and hardly any, so that producers had better wait a moment.
"""

from __future__ import annotations

from addressing.address import router_of
from addressing.book import AddressKind, AddressPolicy
from router.brokers import Brokers
from router.entries import Entry
from router.routing.core import Routing

MAX_CIRCUITS = 8
FALLBACK_PHASE = 2
"""Of circuits that lead to the first broker of an address's fallback; the next broker's is one higher."""


def key_of(entry: Entry) -> str:
    """What a router advertises that has takers for it."""
    letter = "X" if entry.policy.kind is AddressKind.MULTICAST else "M"
    return f"{letter}{entry.group.phase}{entry.policy.address}"


def broker_key(broker: str) -> str:
    return f"B:{broker}"


def fallback_phase(queue: AddressPolicy, broker: str) -> int:
    return FALLBACK_PHASE + queue.brokers.index(broker)


def fallback_keys(address: str) -> tuple[str, str]:
    """(may hold messages, hold on)"""
    return f"F0{address}", f"F1{address}"


class Reach:
    """What the link state says, in terms of addresses."""

    def __init__(self, router_id: str, routing: Routing, brokers: Brokers) -> None:
        self.router_id = router_id
        self.routing = routing
        self._brokers = brokers

    def takers(self, entry: Entry) -> frozenset[str]:
        """Routers to which a circuit of this address could go, whether reachable or not."""
        policy, phase = entry.policy, entry.group.phase
        owner = router_of(policy.address)
        if owner is not None:
            found = frozenset({owner})
        elif policy.kind.is_stored and phase == 0:
            found = frozenset().union(*(self.routing.routers_with(broker_key(broker)) for broker in policy.brokers))
        else:
            found = self.routing.routers_with(key_of(entry))
        return found - {self.router_id}

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
        return any(taker.cost == 0 for taker in entry.group.takers) or bool(self.cheapest(self.takers(entry)))

    def is_announced(self, entry: Entry) -> bool:
        takers = self.takers(entry)
        # A dynamic address announces itself, also when its router is gone or never was.
        return bool(self.cheapest(takers) if router_of(entry.policy.address) else takers)

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
