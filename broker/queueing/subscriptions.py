"""The subscription that a consumer of a topic gets at a broker: a new, an earlier or a shared subscription."""

from __future__ import annotations

from math import inf

from addressing.address import Address
from addressing.filter_set import FilterSet
from broker.queueing.expired_subscriptions import ExpiredSubscriptions
from broker.queueing.held_queue import HeldQueue
from broker.queueing.message_store import MessageStore
from broker.queueing.subscribers import Subscribers, SubscriptionKey
from broker.queueing.subscription_owners import OwnershipClaim, SubscriptionOwners
from wire.errors import LinkError
from wire.terminus import Expiry, Terminus


def timeout_s(wanted: Terminus) -> float:
    """Return the seconds for which a durable subscription of the source ``wanted`` is kept without consumers. [3.5.3]

    inf for ever: if the source says never, or names no timeout or 0. By the spec a source without a timeout expires
    with its session, but clients that only say durable mean for ever.
    """
    return wanted.timeout_s if wanted.timeout_s and wanted.expiry is not Expiry.NEVER else inf


class TopicSubscriptions:
    """Finds, makes and ends the subscriptions of topics for the links of consumers.

    A request that cannot be met raises LinkError, and changes nothing.
    """

    def __init__(
        self,
        message_store: MessageStore,
        subscribers: Subscribers,
        abandoned: ExpiredSubscriptions,
        owners: SubscriptionOwners,
    ) -> None:
        self._message_store = message_store
        self._subscribers = subscribers
        self._abandoned = abandoned
        self._owners = owners

    def judge(self, container_id: str, link_name: str, wanted: Terminus, user: str | None) -> None:
        """Raise LinkError, without any change, if the link asks for a subscription that ``user`` may not have."""
        key = self._key(container_id, link_name, wanted)
        held = self._message_store.subscription(key) if key is not None else None
        if held is not None:
            self._owners.judge(held, user)

    def take(
        self,
        container_id: str,
        link_name: str,
        filter_: Address,
        wanted: Terminus,
        claim: OwnershipClaim,
        filter_set: FilterSet | None = None,
    ) -> HeldQueue:
        """Return the subscription for the source ``wanted`` with this filter, made if missing; call `judge` before.

        Only a source that is neither durable nor shared may have a ``filter_set``. Raises LinkError if the name is used
        by a subscription of the other kind, shared or not, or if active consumers share the subscription with another
        filter.
        """
        is_durable = wanted.outlives_link
        key = self._key(container_id, link_name, wanted)
        if key is None:
            return self._message_store.subscribe(filter_, owner=claim.user, filter_set=filter_set)
        if "shared" in wanted.capabilities:
            return self._share(key, filter_, claim, is_durable=is_durable)
        self._refuse_name_of(self._subscribers.shared_alike(container_id, link_name))
        return self._take_durably(key, filter_, claim)

    def recall(self, container_id: str, link_name: str, user: str | None) -> HeldQueue:
        """Return the durable subscription that a link with a null source asks for by its name, usually to end it.

        Raises LinkError if there is none, or ``user`` may not have the subscription.
        """
        for key in self._subscribers.recalled(container_id, link_name):
            held = self._message_store.subscription(key)
            if held is not None:
                self._owners.judge(held, user)
                return held
        raise LinkError("amqp:not-found", f"no durable subscription is known as {link_name!r}")

    def _key(self, container_id: str, link_name: str, wanted: Terminus) -> SubscriptionKey | None:
        """Return the key of the subscription that a link asks for; None if no other link could find or share it."""
        is_durable = wanted.outlives_link
        if "shared" in wanted.capabilities:
            is_global = "global" in wanted.capabilities
            return self._subscribers.shared(container_id, link_name, is_global=is_global, is_durable=is_durable)
        return self._subscribers.own(container_id, link_name) if is_durable else None

    def leave(self, held: HeldQueue, timeout_s: float, now: float) -> None:
        """Start the time until a durable subscription expires, ``timeout_s`` or less, if its last consumer left."""
        if held.is_durable and not held.taker_count:
            self._abandoned.on_left(held, timeout_s, now)

    def end(self, held: HeldQueue, claim: OwnershipClaim) -> None:
        """Delete a durable subscription that its client ended, with its messages, and log the deletion."""
        self._owners.note_ended(held, claim.user, claim.peer)
        self._abandoned.forget(held)
        self._message_store.delete(held)

    @staticmethod
    def unless_taken(held: HeldQueue) -> HeldQueue:
        """Return ``held``, a subscription to be ended; raise LinkError while consumers that share it are still there.

        An unshared subscription has no consumer left: its only link had the same name, and was detached before.
        """
        if held.taker_count and held.key is not None:
            raise LinkError(
                "amqp:resource-locked",
                f"subscription {held.key.text} on {held.address!r} has {held.taker_count} active consumers: "
                "end it once they have left",
            )
        return held

    def _share(self, key: SubscriptionKey, filter_: Address, claim: OwnershipClaim, *, is_durable: bool) -> HeldQueue:
        held = self._message_store.subscription(key)
        if held is not None and held.taker_count and held.address != filter_.text:
            raise LinkError(
                "amqp:resource-locked",
                f"subscription {key.text} is on {held.address!r} and has {held.taker_count} active consumers: "
                f"it cannot change to {filter_.text!r}",
            )
        if not is_durable:
            return held or self._message_store.subscribe(filter_, key, claim.user)
        self._refuse_name_of(self._subscribers.own_alike(key))
        return self._take_durably(key, filter_, claim)

    def _take_durably(self, key: SubscriptionKey, filter_: Address, claim: OwnershipClaim) -> HeldQueue:
        old = self._message_store.subscription(key)
        if old is not None:
            self._abandoned.forget(old)
            if old.address != filter_.text:
                self._owners.note_ended(old, claim.user, claim.peer, filter_.text)
        held = self._message_store.subscribe_durably(filter_, key, claim.user)
        self._owners.take(held, claim.user)
        return held

    def _refuse_name_of(self, others: tuple[SubscriptionKey, ...]) -> None:
        for key in others:
            other = self._message_store.subscription(key)
            if other is not None:
                state = f"has {other.taker_count} active consumers" if other.taker_count else "exists without consumers"
                raise LinkError(
                    "amqp:resource-locked",
                    f"a durable subscription {key.text} on {other.address!r} {state}: a shared and an "
                    "unshared subscription cannot have the same name; unsubscribe first",
                )
