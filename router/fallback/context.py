"""The objects that the classes of this package share: an address with its fallback queue, and the router's services."""

from __future__ import annotations

from dataclasses import dataclass

from addressing.address import Address
from addressing.book import AddressPolicy
from router.distribution.address_circuits import AddressCircuits
from router.distribution.broker_links import BrokerLinks
from router.distribution.changed_addresses import ChangedAddresses
from router.distribution.entries import AddressEntry
from router.distribution.reach import AddressReach
from router.distribution.upkeep import Upkeep
from router.forwarding.fallback import AnycastWithFallback
from router.timers import Timers


@dataclass(frozen=True, slots=True)
class FallbackContext:
    """An address with a fallback queue.

    ``queue``: the policy of the fallback queue. ``group``: the same object as ``entry.group``, with its exact type.
    """

    entry: AddressEntry
    group: AnycastWithFallback
    queue: AddressPolicy

    @property
    def address(self) -> Address:
        return self.entry.policy.address


@dataclass(frozen=True, slots=True)
class FallbackServices:
    """The router's services for a fallback: finding takers and keepers, circuits, links to brokers, retries, timers.

    An address entry that is added to ``changed`` is brought up to date.
    """

    reach: AddressReach
    circuits: AddressCircuits
    links: BrokerLinks
    upkeep: Upkeep
    timers: Timers
    changed: ChangedAddresses
    path_wait_s: float
