"""Warnings about topics whose messages wildcard subscriptions miss, because another broker keeps the topic."""

from __future__ import annotations

from collections.abc import Iterator

from addressing.pattern import PatternSet, is_pattern
from addressing.topology.model import Topology
from addressing.topology.problem import Problem


def check_split_topics(topology: Topology) -> Iterator[Problem]:
    """Yield a warning for each topic of the valid ``topology`` that matches a topic pattern kept by another broker."""
    homes = {
        pattern: topology.brokers_of(address)[0]
        for pattern, address in topology.addresses.items()
        if address.type.has_subscriptions
    }
    above = {pattern: PatternSet([pattern]) for pattern in homes if is_pattern(pattern)}
    for topic, home in homes.items():
        for pattern, below in above.items():
            if homes[pattern] != home and topic in below:
                yield _missed(topic, home, pattern, homes[pattern])
                break


def _missed(topic: str, home: str, pattern: str, broker: str) -> Problem:
    return Problem(
        ("addresses", topic),
        "AM414",
        f"a subscriber of {pattern!r}, on {broker}, does not get the messages of {topic!r}, on {home}",
        fix=f"keep both on one broker, or have consumers subscribe to {topic!r} too.",
        at_key=True,
        severity="warning",
    )
