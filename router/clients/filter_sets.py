"""Clients' links of filter sets: receivers with a set, and control links, over which a client changes a set.

The sets of topics are at embedded brokers: the links are routed there, and changes pass through unread. The sets of
multicasts are at the client's own router: see `router.clients.multicast_sets`. docs/reference/filter-sets.md describes
both links.
"""

from __future__ import annotations

from addressing.book import AddressBook, AddressPolicy
from wire.errors import AmqpError
from wire.filter_set import CONTROL, filter_set_of
from wire.link import IncomingLink, OutgoingLink


def is_control(link: IncomingLink) -> bool:
    """Say whether a client attached ``link`` as a control link."""
    return CONTROL in link.wanted_capabilities


def check_control(book: AddressBook, policy: AddressPolicy) -> None:
    """Raise AmqpError if the address of ``policy``, to which a client attaches a control link, has no filter sets."""
    if not book.has_filter_sets(policy):
        raise AmqpError(
            "amqp:not-implemented",
            f"{policy.address.name!r} has no filter sets, and the target of the link has the capability {CONTROL!r}: "
            "expected a topic of an embedded broker, or multicast addresses by a name with wildcards",
        )


def has_set(book: AddressBook, policy: AddressPolicy, link: OutgoingLink) -> bool:
    """Say whether the subscription of ``link``, to the address of ``policy``, is to be narrowed by a filter set."""
    return policy.has_wildcards and book.has_filter_sets(policy) and bool(filter_set_of(link.remote_source))
