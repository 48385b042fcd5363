"""Kinds of addresses (anycast, queue, ...), each with properties that say how routers and brokers treat its addresses.

A new kind is one more member of `AddressKind` with its traits. Code elsewhere asks a property of the kind, and never
compares a kind with a member.
"""

from __future__ import annotations

from enum import Flag, StrEnum, auto
from typing import Self

from addressing.queue_policy import WhenFull
from addressing.routing_keys import KeyForm


class Trait(Flag):
    """Facts that may be true of a kind of address, and from which all properties of `AddressTraits` follow."""

    PASSED = 0
    """Routers pass each message to one of the consumers that are attached; no broker stores the message."""
    COPIED = auto()
    """Each consumer gets each message."""
    STORED = auto()
    """A broker keeps the messages until consumers have settled them."""
    REFUSED = auto()
    """No client may attach."""


class AddressTraits(StrEnum):
    """Base class of `AddressKind`: properties that say how addresses of a kind are treated."""

    is_copied: bool
    """Each consumer gets each message, from a router or from a subscription of its own."""
    is_stored: bool
    """A broker keeps the messages; links of clients lead to the broker."""
    is_refused: bool
    """No client may attach, and no circuit is accepted."""

    def __new__(cls, word: str, traits: Trait) -> Self:
        kind = str.__new__(cls, word)
        kind._value_ = word
        kind.is_copied = Trait.COPIED in traits
        kind.is_stored = Trait.STORED in traits
        kind.is_refused = Trait.REFUSED in traits
        return kind

    # Messages at routers
    @property
    def is_copied_by_routers(self) -> bool:
        """Say whether routers copy each message along a tree to all attached consumers: true of multicast only."""
        return self.is_copied and not self.is_stored

    @property
    def is_distributed(self) -> bool:
        """Say whether routers choose one consumer for each message: true of anycast only.

        Only such addresses may have a distribution and a fallback queue.
        """
        return not (self.is_copied or self.is_stored or self.is_refused)

    @property
    def takers_form(self) -> KeyForm:
        """The form of the routing key with which a router advertises takers (consumers) of an address."""
        return KeyForm.COPY_TAKERS if self.is_copied_by_routers else KeyForm.TAKERS

    # Messages at brokers
    @property
    def has_queues(self) -> bool:
        """Say whether a broker keeps an address's messages in a queue, which consumers share: true of a queue only."""
        return self.is_stored and not self.is_copied

    @property
    def has_subscriptions(self) -> bool:
        """Say whether a broker keeps each message of an address once for each subscription: true of a topic only."""
        return self.is_stored and self.is_copied

    @property
    def has_filters(self) -> bool:
        """Say whether a consumer may name a pattern, and get the messages of all addresses that the pattern matches.

        True of topics, whose broker matches, and of multicast addresses, which routers match.
        """
        return self.is_copied

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities that tell a broker, which has no topology file, what a router attaches to: queue or topic.

        Empty for a kind that no broker stores.
        """
        if not self.is_stored:
            return ()
        return (TOPIC_CAPABILITY,) if self.is_copied else (QUEUE_CAPABILITY,)

    @property
    def when_full(self) -> WhenFull:
        """The default of ``when_full``: a full subscription drops its oldest message, a full queue blocks producers."""
        return WhenFull.DROP_OLDEST if self.has_subscriptions else WhenFull.BLOCK


QUEUE_CAPABILITY, TOPIC_CAPABILITY = "queue", "topic"


class AddressKind(AddressTraits):
    """The kinds of addresses; the value of each is the word for the address's type in the topology file."""

    ANYCAST = "anycast", Trait.PASSED
    MULTICAST = "multicast", Trait.COPIED
    QUEUE = "queue", Trait.STORED
    TOPIC = "topic", Trait.STORED | Trait.COPIED
    UNAVAILABLE = "unavailable", Trait.REFUSED


class Distribution(StrEnum):
    """Rule by which a router chooses the taker (consumer or next router) of a message to an anycast address."""

    BALANCED = "balanced"
    CLOSEST = "closest"
