"""What do all parts of a fallback work with?"""

from __future__ import annotations

from dataclasses import dataclass

from addressing.book import AddressPolicy
from router.address_circuits import AddressCircuits
from router.broker_links import BrokerLinks
from router.entries import Entry
from router.forwarding.fallback import AnycastWithFallback
from router.reach import Reach
from router.timers import Timers
from router.upkeep import Upkeep


@dataclass(frozen=True, slots=True)
class Backed:
    """An address that a queue stands behind. ``group`` is that of ``entry``, which it knows by a wider type."""

    entry: Entry
    group: AnycastWithFallback
    queue: AddressPolicy

    @property
    def address(self) -> str:
        return self.entry.policy.address


@dataclass(frozen=True, slots=True)
class Ways:
    """What leads from this router to takers and to queues."""

    reach: Reach
    circuits: AddressCircuits
    links: BrokerLinks
    upkeep: Upkeep
    timers: Timers
    path_wait_s: float
