"""Can users get at each other's subscriptions? At an existing broker they can, where links are known by name alone."""

from __future__ import annotations

from collections.abc import Iterator

from addressing.book import AddressKind
from addressing.broker_settings import Subscriptions
from addressing.problem import Problem
from addressing.topology import Topology


def check_subscriptions(topology: Topology) -> Iterator[Problem]:
    """Yield a warning for each existing broker of ``topology``, which is right, that does not keep users apart."""
    topics = [address for address in topology.addresses.values() if address.type is AddressKind.TOPIC]
    with_topics = {broker for address in topics for broker in topology.brokers_of(address)}
    for name, broker in topology.brokers.items() if topology.users else ():
        if name in with_topics and not broker.is_embedded and broker.subscriptions is Subscriptions.BY_NAME:
            yield Problem(
                ("brokers", name),
                "AM305",
                f"broker {name!r}: a user with the right to a topic can take, and end, subscriptions of other users",
                at_key=True,
                severity="warning",
            )
