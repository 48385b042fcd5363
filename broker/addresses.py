"""The addresses that a broker serves: kind (queue, topic, temporary queue or probe queue) and policies of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

from addressing.address import BROKER_PREFIX, DEFAULT_SPACE, Address, normalize
from addressing.book import SpaceBooks, subscription_expiry_s
from addressing.kinds import AddressKind
from addressing.pattern import is_pattern
from addressing.queue_policy import NO_POLICY, PatternPolicy, QueuePolicy

if TYPE_CHECKING:
    from addressing.topology.model import DeclaredAddress

_CACHED_ADDRESSES = 4096


class BrokerAddressKind(Enum):
    QUEUE = "queue"
    TOPIC = "topic"
    TEMPORARY = "temporary queue"
    PROBE = "probe queue"
    """A queue in memory whose messages are accepted only once on disk, to show that the disk works."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """An address that a broker serves, by the name that the address has at the broker, and its kind.

    The filter of a subscription to a topic is an address too: for a filter with wildcards the topology entry that
    covers the filter applies, though single addresses that the filter matches may have entries of their own.
    """

    address: Address
    holding: BrokerAddressKind
    subscription_expiry_s: float = inf
    """Seconds without a consumer after which a durable subscription is deleted; inf for never."""
    fills_to: bool = False
    """Whether the broker writes the address into the field `to` of messages without one."""
    has_wildcards: bool = field(init=False)
    published: bytes | None = field(init=False)
    """The address of a topic as subscribers with wildcards are told it, in UTF-8; None for a queue."""

    def __post_init__(self) -> None:
        # Computed once, since `BrokerAddresses` keeps the address, and the broker asks for each message.
        name, is_topic = self.address.name, self.holding is BrokerAddressKind.TOPIC
        object.__setattr__(self, "has_wildcards", is_pattern(name))
        object.__setattr__(self, "published", name.encode(errors="replace") if is_topic else None)


class BrokerAddresses:
    """The addresses of the topology that one broker of the mesh serves, with their policies.

    Routers and the rows of the broker's store name an address by its text: space and name as one string.
    """

    def __init__(self, broker: str, books: SpaceBooks) -> None:
        self._broker = broker
        self._books = books
        # The addresses found are cached: a broker looks up an address at each attach, and at messages whose queues or
        # subscriptions it does not remember, such as those to a queue over a link without an address.
        self._found = lru_cache(_CACHED_ADDRESSES)(self._find)
        self._temporary_prefix = f"{BROKER_PREFIX}{broker}/temp."
        self._temporary_topic_prefix = f"{BROKER_PREFIX}{broker}/temp-topic."
        # These addresses have another name at the broker than in the mesh: routers attach links with the name at the
        # broker, which the topology need not declare as an address.
        self._renamed: dict[Address, BrokerAddress] = {}
        self._renamed_policies: dict[Address, QueuePolicy] = {}
        self._find_renamed()

    def _find_renamed(self) -> None:
        for book in self._books:
            for entry in book.renamed_at(self._broker):
                address = Address(book.space, entry.broker_address)
                expiry_s, fills_to = subscription_expiry_s(entry), bool(entry.fill_to)
                place = BrokerAddress(address, _holding_of(entry.type), expiry_s, fills_to)
                self._renamed[address], self._renamed_policies[address] = place, book.queue_policy(entry)

    def extended(self, added: Mapping[str, DeclaredAddress]) -> BrokerAddresses:
        """Return the addresses with the declarations ``added``, too; these addresses do not change."""
        return BrokerAddresses(self._broker, self._books.extended(added))

    def adopt(self, other: BrokerAddresses) -> None:
        """Have the declarations of ``other``; so has whoever holds this object, or its books."""
        self._books.adopt(other._books)
        self._find_renamed()
        self._found.cache_clear()

    def resolve(self, text: str) -> BrokerAddress | None:
        """Return the address with this text, in normal form, with its kind; None if this broker does not serve it.

        A text without a space is an address of the default space.
        """
        return self._found(text)

    def _find(self, text: str) -> BrokerAddress | None:
        address = Address.parse(normalize(text))
        renamed = self._renamed.get(address)
        if renamed is not None:
            return renamed
        if address.space == DEFAULT_SPACE and address.name.startswith(self._temporary_topic_prefix):
            return BrokerAddress(address, BrokerAddressKind.TOPIC)
        policy = self._books.resolve(address)
        if policy is None or self._broker not in policy.brokers:
            return None
        if policy.is_internal:
            return BrokerAddress(
                address, BrokerAddressKind.TEMPORARY if self.is_temporary(address) else BrokerAddressKind.PROBE
            )
        return BrokerAddress(address, _holding_of(policy.kind), policy.subscription_expiry_s, policy.fills_to)

    def subscription_expiry_s(self, filter_: str) -> float:
        """Return the seconds without a consumer after which a durable subscription with this filter is deleted.

        inf for never, also if the topology has the address of the filter no more.
        """
        place = self.resolve(filter_)
        return inf if place is None else place.subscription_expiry_s

    def queue_policy(self, address: Address) -> QueuePolicy:
        """Return the policy (limits, dead letters) of the queue at ``address``, or of subscriptions with this filter.

        NO_POLICY for an address that this broker does not serve.
        """
        renamed = self._renamed_policies.get(address)
        if renamed is not None:
            return renamed
        policy = self._books.resolve(address)
        return NO_POLICY if policy is None or self._broker not in policy.brokers else policy.queue

    def pattern_policy(self, address: Address) -> PatternPolicy | None:
        """Return the limits of the pattern under which a client's use makes a queue of ``address``.

        None for a queue that the topology file names, and for an address that is not a queue.
        """
        return None if address in self._renamed else self._books.pattern_policy(address)

    def temporary(self, token: str, *, is_topic: bool = False) -> BrokerAddress:
        """Return an address for the temporary queue or topic of a dynamic terminus; ``token`` makes it unique. [3.5.3]

        No queue is made.
        """
        if is_topic:
            topic = Address(DEFAULT_SPACE, f"{self._temporary_topic_prefix}{token}")
            return BrokerAddress(topic, BrokerAddressKind.TOPIC)
        queue = Address(DEFAULT_SPACE, f"{self._temporary_prefix}{token}")
        return BrokerAddress(queue, BrokerAddressKind.TEMPORARY)

    def is_temporary(self, address: Address) -> bool:
        return address.space == DEFAULT_SPACE and address.name.startswith(self._temporary_prefix)


def _holding_of(kind: AddressKind) -> BrokerAddressKind:
    return BrokerAddressKind.TOPIC if kind.has_subscriptions else BrokerAddressKind.QUEUE
