"""Whether declarations can be added to a book without a change for any address that the book has already.

A mesh that runs takes further declarations only then: links, queues and circuits keep the policy with which they began.
The rules are about declarations alone, never about what is in use: what a client attaches to meanwhile changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from addressing.book import AddressBook, names_in
from addressing.coverage import may_overlap
from addressing.pattern import is_better, is_pattern

if TYPE_CHECKING:
    from addressing.topology.model import DeclaredAddress


def conflicts(book: AddressBook, added: Mapping[str, DeclaredAddress]) -> Iterator[str]:
    """Yield a sentence for each declaration in ``added`` that would give an address of ``book`` another meaning."""
    for name, entry in added.items():
        yield from _taken_names(book, name)
        yield from _shared_queues(book, name, entry)
    for name in dict.fromkeys(names_in(added)):
        limits = book.pattern_policy(name)
        if limits is not None:
            yield (
                f"an added address names {name}, so the limits of queues under {limits.pattern}, which {name} has now, "
                "would no longer hold"
            )


def _taken_names(book: AddressBook, name: str) -> Iterator[str]:
    policy = book.resolve(name)
    if policy is not None:
        yield f"{name} has the settings of {policy.pattern or name} now, and would get its own"
        return
    if not is_pattern(name):
        return
    if book.resolve_filter(name) is not None:
        yield f"consumers may use {name} as a filter of multicast addresses now, and it would become an address itself"
        return
    for pattern in book.declared_patterns:
        if is_better(name, pattern) and may_overlap(name, pattern):
            yield f"addresses that match both {name} and {pattern} have the settings of {pattern} now, and would change"


def _shared_queues(book: AddressBook, name: str, entry: DeclaredAddress) -> Iterator[str]:
    """Yield a sentence for each broker where a queue or topic of ``book`` has the name of the added one there."""
    for broker in book.brokers_of(entry):
        at_broker = entry.broker_address or name
        policy = book.resolve(at_broker) if entry.broker_address else None
        if policy is not None and broker in policy.brokers and not policy.broker_address:
            yield f"{name} would be {at_broker} at broker {broker}, which is the address {at_broker} there now"
        for other in book.renamed_at(broker):
            if other.broker_address == at_broker:
                yield f"{name} would be {at_broker} at broker {broker}, which is the queue or topic of another address"
