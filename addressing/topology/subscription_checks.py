"""Warnings about existing brokers where a user can take over durable subscriptions of other users.

An existing broker finds a subscription by container-id and link name alone, unless the names contain the user.
"""

from __future__ import annotations

from collections.abc import Iterator

from addressing.topology.model import Topology
from addressing.topology.problem import Problem
from addressing.topology.queries import Subscriptions


def check_subscriptions(topology: Topology) -> Iterator[Problem]:
    """Yield a warning for each existing broker with topics whose subscription names do not contain the user.

    A mesh without users gets no warning. ``topology`` is valid.
    """
    topics = [address for address in topology.addresses.values() if address.type.has_subscriptions]
    with_topics = {broker for address in topics for broker in topology.brokers_of(address)}
    for name, broker in topology.brokers.items() if topology.users else ():
        if name in with_topics and not broker.is_embedded and broker.subscriptions is Subscriptions.BY_NAME:
            yield Problem(
                ("brokers", name),
                "AM305",
                f"broker {name!r}: a user who may receive from a topic can also take from, and end, "
                "other users' subscriptions to it",
                at_key=True,
                severity="warning",
            )
