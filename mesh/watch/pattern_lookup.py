"""What a topology declares about an address, for the model of a host."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from addressing.address import Address
from addressing.book import SpaceBooks
from addressing.coverage import covers
from addressing.pattern import PatternSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from addressing.topology.model import Topology
    from mesh.watch.host_model import PatternOf


def detail_lookup(topology: Topology) -> Callable[[str], bool]:
    """Return a function that tells whether `metrics.detail` has an address."""
    detailed = PatternSet(topology.metrics.detail)
    return detailed.__contains__


def unlisted_patterns(topology: Topology) -> frozenset[str]:
    """Return the declared patterns that `metrics.off` leaves out of `/metrics`."""
    return frozenset(
        pattern for pattern in topology.addresses if any(covers(off, pattern) for off in topology.metrics.off)
    )


def declared_patterns(topology: Topology) -> list[tuple[str, str]]:
    """Return the entries of the topology's addresses, each with its type."""
    return [(pattern, entry.type.value) for pattern, entry in topology.addresses.items()]


def pattern_lookup(topology: Topology) -> PatternOf:
    """Return a function from an address to the declared pattern that covers the address, and its type."""
    books = SpaceBooks(topology)

    @lru_cache(10_000)
    def pattern_of(address: str) -> tuple[str, str] | None:
        policy = books.resolve(Address.parse(address))
        if policy is None or policy.is_internal or not policy.pattern:
            return None
        return policy.pattern, policy.kind.value

    return pattern_of
