"""Refusals of clients that name an address with wildcards where one exact address is expected.

Only a consumer of addresses whose messages are copied (topics, multicast) may name a pattern. A sender never may: each
message has one address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from addressing.book import AddressPolicy
from addressing.kinds import AddressKind

_WILDCARD = re.compile(r"(?<![^./])[*#](?![^./])")


def why_refused(policy: AddressPolicy, *, sends: bool) -> str | None:
    """Return a sentence that says which address to use instead; None if the client may use the address as it is."""
    if not policy.has_wildcards or (policy.kind.has_filters and not sends):
        return None
    name = policy.address.name
    return _only(name, f"one address that {policy.pattern!r} matches, such as {example_of(name)!r}", sends=sends)


def why_uncovered(filter_: str, overlaps: Mapping[str, AddressKind], *, sends: bool = False) -> str | None:
    """Return a sentence that says which address to use instead of one with wildcards and without a policy.

    None if the topology declares nothing that ``filter_`` matches. ``overlaps``: what `AddressBook.overlaps` returns.
    """
    if not overlaps:
        return None
    topics = [name for name, kind in overlaps.items() if kind.has_subscriptions]
    if sends or not topics:
        return _only(filter_, f"one address, such as {example_of(next(iter(overlaps)))!r}", sends=sends)
    multicast = [name for name, kind in overlaps.items() if kind.has_filters and name not in topics]
    examples = " or ".join(repr(name) for name in (*topics[:1], *multicast[:1]))
    return (
        f"no address of the topology covers the filter {filter_!r}, which matches {topics[0]!r} of type topic and "
        f"perhaps others: expected a filter of one address or pattern of the topology, such as {examples}"
    )


def _only(name: str, instead: str, *, sends: bool) -> str:
    if sends:
        return f"{name!r} has wildcards: expected {instead}"
    who = "only topics and multicast addresses have receivers with wildcards"
    return f"{name!r} has wildcards, and {who}: expected {instead}"


def example_of(pattern: str) -> str:
    """Return an address that ``pattern`` matches, with the word "example" for each wildcard."""
    return _WILDCARD.sub("example", pattern)
