"""The queues and subscriptions of a broker that operators' requests name."""

from __future__ import annotations

from addressing.address import Address
from addressing.pattern import PatternSet, is_pattern
from broker.addresses import BrokerAddresses, BrokerAddressKind
from broker.operating.answers import AdministrationError, QueueNotCreated, name_of
from broker.queueing.held_queue import HeldQueue
from broker.queueing.message import QueueEntry
from broker.queueing.message_store import MessageStore
from broker.store.cause import Reason

NAMED = 5
"""An error text for a topic without a named subscriber lists at most this many of its subscribers."""


class NamedQueues:
    """Finds, and makes, the queues that operators name."""

    def __init__(self, addresses: BrokerAddresses, message_store: MessageStore) -> None:
        self._addresses = addresses
        self._message_store = message_store

    def queue_or_subscriptions(self, address: str) -> list[HeldQueue]:
        wanted = Address.parse(address)
        held = self._message_store.existing_queue(wanted)
        if held is not None:
            return [held]
        below = PatternSet([wanted.name])
        heard = {} if is_pattern(wanted.name) else dict.fromkeys(self._message_store.matching(wanted))
        named = {
            held: None
            for held in self._message_store.every_queue()
            if held.is_subscription and _is_below(Address.parse(held.address), wanted, below)
        }
        return [*(heard | named)]

    def one(self, address: str, subscriber: str | None) -> HeldQueue:
        """Return the queue at ``address`` or, for a topic, the subscription of ``subscriber`` to it.

        Raises AdministrationError if there is none, or a topic with subscriptions is given without a subscriber.
        """
        found = self.queue_or_subscriptions(address)
        if subscriber is None and found and not found[0].is_subscription:
            return found[0]
        for held in found:
            if held.subscriber is not None and held.subscriber == subscriber:
                return held
        subscribers = [held.subscriber for held in found if held.subscriber is not None]
        if subscriber is not None or not subscribers:
            raise self.unknown(address, subscriber)
        named = ", ".join(subscribers[:NAMED]) + (f" and {len(subscribers) - NAMED} more" * (len(subscribers) > NAMED))
        raise AdministrationError(f"{address!r} is a topic: name the subscriber of a subscription, one of {named}")

    def source(self, address: str, subscriber: str | None) -> HeldQueue:
        held = self.one(address, subscriber)
        if not held.is_durable:
            raise AdministrationError(f"{name_of(held)} is in memory only: its messages cannot be moved")
        return held

    def target(self, address: str) -> HeldQueue:
        """Return the durable queue at ``address``, made if there is none and the topology has the queue on this broker.

        Raises AdministrationError for any other address.
        """
        held = self._message_store.existing_queue(Address.parse(address))
        if held is None:
            return self._message_store.queue(self.kept(address))
        if not held.is_durable:
            raise AdministrationError(f"{name_of(held)} is in memory only: no message can be moved there")
        return held

    def origin_queue(self, entry: QueueEntry, held: HeldQueue, origin: str | None) -> HeldQueue | None:
        """Return the queue at ``origin``, from which the dead letter ``entry`` came, made if missing; None if it stays.

        A message stays in ``held`` that is no dead letter, such as one that an operator moved, and a dead letter whose
        origin is ``held`` itself, or no durable queue that the topology still has on this broker.
        """
        if origin is None or (entry.cause is not None and entry.cause.reason is Reason.MOVED):
            return None
        try:
            goal = self.target(origin)
        except AdministrationError:
            return None
        return None if goal is held else goal

    def kept(self, address: str) -> Address:
        """Return the address in normal form; raise AdministrationError if the topology has no durable queue there."""
        place = self._addresses.resolve(address)
        if is_pattern(address):
            raise AdministrationError(f"{address!r} has wildcards: expected the name of one queue")
        if place is None:
            raise AdministrationError(f"the topology has no queue {address!r} on this broker")
        if place.holding is BrokerAddressKind.TOPIC:
            raise AdministrationError(
                f"{address!r} is a topic, expected a queue: subscribers make the subscriptions of a topic"
            )
        if place.holding is not BrokerAddressKind.QUEUE:
            raise AdministrationError(f"{address!r} is a {place.holding.value}, expected a durable queue")
        return place.address

    def unknown(self, address: str, subscriber: str | None) -> AdministrationError:
        if subscriber is not None:
            return AdministrationError(f"no subscription of {subscriber!r} to {address!r} on this broker")
        place = self._addresses.resolve(address)
        if place is not None and place.holding is BrokerAddressKind.TOPIC:
            return AdministrationError(f"no durable subscription to {address!r} on this broker")
        if place is None or is_pattern(address):
            return AdministrationError(f"no queue or subscription {address!r} on this broker")
        return QueueNotCreated(f"there is no queue {address!r} yet: its first use makes it, or `create`")


def _is_below(filter_: Address, wanted: Address, below: PatternSet) -> bool:
    return filter_.space == wanted.space and (filter_.name == wanted.name or filter_.name in below)
