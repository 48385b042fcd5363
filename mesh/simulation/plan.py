"""Makes the plan of a simulation: a random topology, if the user gives none, and the addresses with traffic."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import networkx

from addressing.book import AddressBook
from addressing.kinds import AddressKind
from addressing.permissions import Permissions
from addressing.topology.model import Topology

WILDCARD_WORD = "simulated"


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """Traffic planned on an address, with the users as whom the clients send and receive; None is anonymous."""

    address: str
    kind: AddressKind
    sender: str | None
    receiver: str | None


def random_topology(routers: int, degree: int, seed: int) -> Topology:
    """Return a connected random topology: routers with ``degree`` connections of cost 1, and one broker at two routers.

    The four addresses have the four types with traffic. Raises ValueError if no such graph exists or is found.
    """
    names = [f"r{number:0{len(str(routers))}}" for number in range(1, routers + 1)]
    connect: dict[str, list[str]] = {name: [] for name in names}
    for one, other in sorted(map(sorted, connected_graph(routers, degree, seed).edges)):
        connect[names[one]].append(names[other])
    ends = names[:: max(1, routers // 2)][:2]
    fields: dict[str, Any] = {
        "mesh": "simulated",
        "routers": {name: {"connect": others} for name, others in connect.items()},
        "brokers": {"b1": {"data": "b1", "routers": ends}},
        "addresses": {"rpc.*": "anycast", "prices.*": "multicast", "orders.*": "queue", "news.*": "topic"},
    }
    return Topology.model_validate(fields)


def connected_graph(routers: int, degree: int, seed: int) -> Any:
    if not 0 < degree < routers:
        raise ValueError(
            f"{routers} routers cannot have {degree} connections each: expected 1 or more, and less than {routers}"
        )
    if routers * degree % 2:
        raise ValueError(
            f"{routers} routers with {degree} connections each: expected one of the two numbers to be even"
        )
    for attempt in range(100):
        graph = networkx.random_regular_graph(degree, routers, seed=seed * 100 + attempt)
        if networkx.is_connected(graph):
            return graph
    raise ValueError(
        f"found no connected graph of {routers} routers with {degree} connections each: try another seed or degree"
    )


def plan_traffic(topology: Topology, count: int, seed: int) -> tuple[list[FlowPlan], list[str]]:
    """Return the plans for at most ``count`` addresses, and the patterns on which no traffic is possible.

    Possible is traffic on an address that some user may send to and some may receive from, without existing brokers.
    """
    book, permissions = AddressBook(topology), Permissions(topology)
    chance = random.Random(seed)
    possible: list[tuple[int, float, FlowPlan]] = []
    impossible: list[str] = []
    for pattern in topology.addresses:
        examples = (_plan(topology, book, permissions, address) for address in example_addresses(pattern, count))
        plans = [plan for plan in examples if plan is not None]
        # Choose an address of each pattern before a second address of any pattern.
        possible += [(turn, chance.random(), plan) for turn, plan in enumerate(plans)]
        if not plans:
            impossible.append(pattern)
    return [plan for _, _, plan in sorted(possible, key=lambda each: each[:2])][:count], impossible


def example_addresses(pattern: str, count: int) -> list[str]:
    """Return up to ``count`` addresses that match ``pattern``; an address without wildcards matches only itself."""
    if "*" not in pattern and "#" not in pattern:
        return [pattern]
    numbers = [f"{WILDCARD_WORD}-{number:04}" for number in range(1, count + 1)]
    return [pattern.replace("*", number).replace("#", number) for number in numbers]


def _plan(topology: Topology, book: AddressBook, permissions: Permissions, address: str) -> FlowPlan | None:
    policy = book.resolve(address)
    if policy is None or policy.kind.is_refused:
        return None
    if not all(topology.brokers[broker].is_embedded for broker in policy.brokers):
        return None
    users = [None, *topology.users]
    senders = [user for user in users if permissions.may_send(user, address)]
    receivers = [user for user in users if permissions.may_receive(user, address)]
    return FlowPlan(address, policy.kind, senders[0], receivers[0]) if senders and receivers else None
