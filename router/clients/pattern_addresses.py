"""The patterns of the addresses to which a user's links without an address sent lately.

Looking an address up costs a check of the user's permissions and of all declared patterns. Links of the same user share
what they found, so that a hundred senders to a hundred thousand addresses keep each address once.
"""

from __future__ import annotations

from dataclasses import dataclass

from router.timers import Timers
from wire.address_cache import IDLE_S, AddressCache


@dataclass(frozen=True, slots=True)
class SenderIdentity:
    """The sender whose permissions decide where it may send: a user of a space, or an operator (``is_mesh``)."""

    space: str
    user: str | None
    is_mesh: bool


class PatternAddresses:
    """One cache for each sender: from the field `to` of a message to the `Address` of the matching pattern.

    Addresses that were not used for a while are forgotten.
    """

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._caches: dict[SenderIdentity, AddressCache] = {}

    def of(self, sender: SenderIdentity) -> AddressCache:
        cache = self._caches.get(sender)
        if cache is None:
            cache = self._caches[sender] = AddressCache(lambda: self._age_later(sender))
        return cache

    def _age_later(self, sender: SenderIdentity) -> None:
        self._timers.after(IDLE_S, lambda: self._age(sender))

    def _age(self, sender: SenderIdentity) -> None:
        if self._caches[sender].age():
            self._age_later(sender)

    def __len__(self) -> int:
        """The number of addresses in all caches."""
        return sum(len(cache) for cache in self._caches.values())
