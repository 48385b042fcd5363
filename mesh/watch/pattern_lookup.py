"""What a topology declares about an address, for the model of a host."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from addressing.address import Address
from addressing.book import SpaceBooks

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.watch.host_model import PatternOf


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
