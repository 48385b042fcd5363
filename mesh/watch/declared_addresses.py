"""Sentences about an address: its declaration in the topology, and the routers or broker that choose its takers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from addressing.pattern import is_pattern
from addressing.topology.places import TopologyPlaces

if TYPE_CHECKING:
    from addressing.book import AddressPolicy
    from addressing.topology.model import Topology

CLOSEST: Final = "closest"
BALANCED: Final = "balanced"


def declared_sentences(topology: Topology, name: str, policy: AddressPolicy | None) -> Iterator[str]:
    """Yield what ``topology`` declares about the address ``name``, in normal form, whose policy is ``policy``."""
    if policy is None:
        yield f"{name}: the topology declares no such address, so links to it are refused with amqp:not-found"
        return
    entry = topology.addresses.get(policy.pattern)
    if entry is None:
        yield f"{name}: an address of the mesh itself, or a dynamic one"
        return
    place = TopologyPlaces(topology).place("addresses", policy.pattern)
    by = f"by {policy.pattern}" if policy.pattern != name else "declared by its name"
    yield f"{name}: {policy.kind.value}, {by}" + (f" ({place})" if place else "")
    if policy.kind.is_refused:
        yield "the topology says that the address is unavailable: links to it are refused"
    elif policy.is_link_routed:
        yield f"each client's link is tied to a link of its own at broker {policy.brokers[0]}"
    elif policy.is_sharded:
        yield f"a queue over the brokers {', '.join(policy.brokers)}: each message goes to one that has credit"
    elif policy.kind.is_distributed:
        rule = {
            CLOSEST: "the taker with the least path cost" + (" among those with credit" if policy.spill else ""),
            BALANCED: "the taker with the least sum of outstanding deliveries and path cost",
        }
        yield f"each message goes to {rule[policy.treatment]}"
    else:
        yield "each consumer gets a copy of each message"
    if policy.fallback is not None:
        yield f"without a consumer, messages go to the queue {policy.fallback.name}"


def decided_sentences(topology: Topology, name: str, policy: AddressPolicy) -> Iterator[str]:
    """Yield who decides about deliveries of an available address, and so what a recording of the decisions shows."""
    if is_pattern(name):
        yield (
            f"{name} is a pattern, and decisions are recorded by address: name one address that it covers"
            + (
                "; for the pattern itself, they are those about messages of links without an address"
                if policy.stands_for_pattern
                else ""
            )
        )
    elif policy.is_link_routed:
        yield (
            f"no router chooses for deliveries of a link to {name}: a producer's link leads to "
            f"{_place_at_broker(topology, policy)}, and a consumer's link comes from there"
        )
        yield "only messages of links without an address are passed on by choice, and have decisions"
    elif policy.is_sharded:
        yield "routers choose a broker for each message of a producer, and a consumer for each message of a broker"
    elif policy.kind.is_copied:
        yield "routers choose nobody: a decision lists the takers that got a copy, or that a message waits for"
    else:
        yield "each router chooses, for each message, one of its consumers or a circuit to another router"
    if policy.shared is not None and not policy.stands_for_pattern:
        yield (
            f"{name} may share its circuits with other addresses of {policy.pattern}: decisions about messages of "
            "links without an address are those of all of them"
        )


def _place_at_broker(topology: Topology, policy: AddressPolicy) -> str:
    (broker,) = policy.brokers
    found = topology.brokers.get(broker)
    is_existing = found is not None and not found.is_embedded
    what = "topic" if policy.kind.has_subscriptions else "queue"
    gives = ", which keeps a copy for each subscription" if policy.kind.has_subscriptions else ""
    return f"{what} {policy.at_broker(broker)} of {'the existing ' * is_existing}broker {broker}{gives}"
