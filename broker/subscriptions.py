"""Which subscription does a consumer of a topic get: a new one, its old one, or one that it shares?"""

from __future__ import annotations

from math import inf

from broker.abandoned import Abandoned
from broker.held_queue import HeldQueue
from broker.stock import Stock
from broker.subscribers import Subscribers, SubscriptionKey
from wire.errors import LinkError
from wire.terminus import Expiry, Terminus


def timeout_s(wanted: Terminus) -> float:
    """How long the source asks to be kept without its link; inf for ever. [3.5.3]

    One without a timeout ends with its session by the spec; clients that say no more than that it is durable mean it.
    """
    return wanted.timeout_s if wanted.timeout_s and wanted.expiry is not Expiry.NEVER else inf


class Subscriptions:
    """Raises LinkError for what cannot be had, and has changed nothing then."""

    def __init__(self, stock: Stock, subscribers: Subscribers, abandoned: Abandoned) -> None:
        self._stock = stock
        self._subscribers = subscribers
        self._abandoned = abandoned

    def take(self, container_id: str, link_name: str, filter_: str, wanted: Terminus) -> HeldQueue:
        """The subscription that this source asks for."""
        is_durable = wanted.outlives_link
        if "shared" in wanted.capabilities:
            is_global = "global" in wanted.capabilities
            key = self._subscribers.shared(container_id, link_name, is_global=is_global, is_durable=is_durable)
            return self._share(key, filter_, is_durable=is_durable)
        if not is_durable:
            return self._stock.subscribe(filter_)
        self._refuse_name_of(self._subscribers.shared_alike(container_id, link_name))
        return self._take_durably(self._subscribers.own(container_id, link_name), filter_)

    def recall(self, container_id: str, link_name: str) -> HeldQueue:
        """The durable subscription that a link without a source asks for."""
        for key in self._subscribers.recalled(container_id, link_name):
            held = self._stock.subscription(key)
            if held is not None:
                return self._unless_taken(held)
        raise LinkError("amqp:not-found", f"no subscription is known as {link_name!r}")

    def leave(self, held: HeldQueue, timeout_s: float, now: float) -> None:
        """A consumer left what stays; it had asked for that to be kept for so long."""
        if held.is_durable and not held.taker_count:
            self._abandoned.on_left(held, timeout_s, now)

    def end(self, held: HeldQueue) -> None:
        """Delete it, with its messages."""
        self._abandoned.forget(held)
        self._stock.delete(held)

    @staticmethod
    def _unless_taken(held: HeldQueue) -> HeldQueue:
        """Nobody may end a shared subscription under others. A consumer that shares it with nobody was stolen from."""
        if held.taker_count and held.key is not None:
            raise LinkError(
                "amqp:resource-locked",
                f"subscription {held.key.text} on {held.address!r} has {held.taker_count} active consumers: "
                "end it when they are gone",
            )
        return held

    def _share(self, key: SubscriptionKey, filter_: str, *, is_durable: bool) -> HeldQueue:
        held = self._stock.subscription(key)
        if held is not None and held.taker_count and held.address != filter_:
            raise LinkError(
                "amqp:resource-locked",
                f"subscription {key.text} is on {held.address!r} and has {held.taker_count} active consumers: "
                f"it cannot change to {filter_!r}",
            )
        if not is_durable:
            return held or self._stock.subscribe(filter_, key)
        self._refuse_name_of(self._subscribers.own_alike(key))
        return self._take_durably(key, filter_)

    def _take_durably(self, key: SubscriptionKey, filter_: str) -> HeldQueue:
        old = self._stock.subscription(key)
        if old is not None:
            self._abandoned.forget(old)
        return self._stock.subscribe_durably(filter_, key)

    def _refuse_name_of(self, others: tuple[SubscriptionKey, ...]) -> None:
        for key in others:
            other = self._stock.subscription(key)
            if other is not None:
                state = f"has {other.taker_count} active consumers" if other.taker_count else "is kept for them"
                raise LinkError(
                    "amqp:resource-locked",
                    f"a durable subscription {key.text} on {other.address!r} {state}: one that is shared and one that "
                    "is not cannot have the same name; unsubscribe first",
                )
