"""The addresses that a broker serves: the kind of each (queue, topic, temporary or probe queue), and its policies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf

from addressing.address import BROKER_PREFIX, normalize
from addressing.book import AddressBook, subscription_expiry_s
from addressing.kinds import AddressKind
from addressing.queue_policy import NO_POLICY, PatternPolicy, QueuePolicy
from addressing.topology.model import Topology


class BrokerAddressKind(Enum):
    QUEUE = "queue"
    TOPIC = "topic"
    TEMPORARY = "temporary queue"
    PROBE = "probe queue"
    """A queue in memory whose messages are accepted only once on disk, to show that the disk works."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """An address that a broker serves, in normal form, and its kind.

    The filter of a subscription is an address too: for a filter with wildcards the topology entry that covers the
    filter applies, though the addresses matched by the filter may have other entries.
    """

    address: str
    holding: BrokerAddressKind
    subscription_expiry_s: float = inf
    """Seconds without a consumer after which a durable subscription is deleted; inf for never."""


class BrokerAddresses:
    """The addresses of the topology that one embedded broker serves, with their policies."""

    def __init__(self, topology: Topology, broker: str, book: AddressBook) -> None:
        self._broker = broker
        self._book = book
        self._temporary_prefix = f"{BROKER_PREFIX}{broker}/temp."
        self._temporary_topic_prefix = f"{BROKER_PREFIX}{broker}/temp-topic."
        # Addresses with a name of their own at the broker: routers attach with this name, which the topology need not
        # declare as an address.
        renamed = [
            entry
            for entry in topology.addresses.values()
            if entry.broker_address and broker in topology.brokers_of(entry)
        ]
        self._renamed = {
            entry.broker_address: BrokerAddress(
                entry.broker_address, _holding_of(entry.type), subscription_expiry_s(entry)
            )
            for entry in renamed
        }
        self._renamed_policies = {entry.broker_address: book.queue_policy(entry) for entry in renamed}

    def resolve(self, address: str) -> BrokerAddress | None:
        """The address in normal form, with its kind; None for an address that this broker does not serve."""
        name = normalize(address)
        renamed = self._renamed.get(name)
        if renamed is not None:
            return renamed
        if name.startswith(self._temporary_topic_prefix):
            return BrokerAddress(name, BrokerAddressKind.TOPIC)
        policy = self._book.resolve(name)
        if policy is None or self._broker not in policy.brokers:
            return None
        if policy.is_internal:
            return BrokerAddress(
                name, BrokerAddressKind.TEMPORARY if self.is_temporary(name) else BrokerAddressKind.PROBE
            )
        return BrokerAddress(name, _holding_of(policy.kind), policy.subscription_expiry_s)

    def subscription_expiry_s(self, filter_: str) -> float:
        """Seconds until durable subscriptions with this filter expire; inf if the topology has the address no more."""
        place = self.resolve(filter_)
        return inf if place is None else place.subscription_expiry_s

    def queue_policy(self, address: str) -> QueuePolicy:
        """The policy of the queue at ``address``, or of the subscriptions whose filter is ``address``."""
        renamed = self._renamed_policies.get(address)
        if renamed is not None:
            return renamed
        policy = self._book.resolve(address)
        return NO_POLICY if policy is None or self._broker not in policy.brokers else policy.queue

    def pattern_policy(self, address: str) -> PatternPolicy | None:
        """The policy of the pattern that makes ``address`` a queue; None if the topology names the address itself."""
        return None if address in self._renamed else self._book.pattern_policy(address)

    def temporary(self, token: str, *, is_topic: bool = False) -> BrokerAddress:
        """The address of a new temporary queue or topic, for a dynamic terminus; ``token`` makes it unique. [3.5.3]"""
        if is_topic:
            return BrokerAddress(f"{self._temporary_topic_prefix}{token}", BrokerAddressKind.TOPIC)
        return BrokerAddress(f"{self._temporary_prefix}{token}", BrokerAddressKind.TEMPORARY)

    def is_temporary(self, address: str) -> bool:
        return address.startswith(self._temporary_prefix)


def _holding_of(kind: AddressKind) -> BrokerAddressKind:
    return BrokerAddressKind.TOPIC if kind.has_subscriptions else BrokerAddressKind.QUEUE
