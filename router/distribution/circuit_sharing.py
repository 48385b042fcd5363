"""The addresses of anycast patterns that share a circuit: addresses with all consumers at one other router.

Only messages of links without an address use such a circuit, since these name their addresses themselves. All other
addresses, among them those with consumers at several routers, have circuits of their own. Decision 0060.
"""

from __future__ import annotations

from collections.abc import Callable

from addressing.book import AddressBook, AddressPolicy
from router.forwarding.anonymous import AnonymousProducer
from router.timers import Timers
from wire.address_cache import IDLE_S, AddressCache


class CircuitSharing:
    """The addresses of one space that share a circuit now, and the senders without an address that use such circuits.

    ``sole_egress(policy)`` returns the only router with takers of the address, if that is another router in reach.
    """

    def __init__(self, book: AddressBook, sole_egress: Callable[[AddressPolicy], str | None], timers: Timers) -> None:
        self._book = book
        self._sole_egress = sole_egress
        self._timers = timers
        self.groups = AddressCache(self._age_later)
        """Name of an address, as bytes -> the group of the circuit that the address shares."""
        self.producers: dict[AnonymousProducer, None] = {}
        """The senders that use, or used, shared circuits. Each adds and removes itself."""

    def egress_of(self, name: str) -> str | None:
        """Return the egress of the circuit that the address shares with others; None if the address shares none."""
        policy = self._book.resolve(name)
        return None if policy is None or not policy.shares_circuits else self._sole_egress(policy)

    def on_takers_changed(self, names: set[str]) -> None:
        """Look again at the addresses ``names``, of which a router began or ceased to have takers."""
        encoded = {name.encode() for name in names}
        for name in encoded:
            self.groups.discard(name)
        for producer in list(self.producers):
            producer.on_egresses_changed(encoded)

    def on_paths_changed(self) -> None:
        """Look again at all addresses, since routers with takers may have come into reach, or went out of it."""
        self.groups.clear()
        for producer in list(self.producers):
            producer.on_egresses_changed(None)

    def _age_later(self) -> None:
        self._timers.after(IDLE_S, self._age)

    def _age(self) -> None:
        if self.groups.age():
            self._age_later()
