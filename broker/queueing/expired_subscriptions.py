"""Expiry of durable subscriptions to topics: the broker deletes a subscription that had no consumer for too long.

The topology sets the time, or the source of the last consumer, whichever is shorter. The time starts when the last
consumer detaches, and for a subscription without consumers when the broker starts, since the store does not know when a
subscription was last used.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from math import inf

from broker.events import SubscriptionExpired
from broker.queueing.held_queue import HeldQueue
from broker.queueing.message_store import MessageStore
from wire.log import Emit

_SPARE = 100


class ExpiredSubscriptions:
    """Deletes durable subscriptions that had no consumer for too long, and logs each deletion.

    ``expiry_s(filter)`` gives the topology's expiry for subscriptions with this filter; inf for never.

    Always: ``_waiting`` has the durable subscriptions without a consumer that will expire, each with its number
    in ``_due``
    """

    def __init__(self, message_store: MessageStore, expiry_s: Callable[[str], float], log: Emit) -> None:
        self._message_store = message_store
        self._expiry_s = expiry_s
        self._log = log
        self._waiting: dict[HeldQueue, int] = {}
        self._due: list[tuple[float, int, float, HeldQueue]] = []
        """A heap of (deadline, number, time since when the subscription has no consumer, subscription)."""
        self._numbers = itertools.count()

    def begin(self, now: float) -> None:
        """Start the time until expiry of all durable subscriptions of a broker that starts: none has consumers yet."""
        for held in self._message_store.durable_subscriptions():
            self.on_left(held, inf, now)

    def on_left(self, held: HeldQueue, timeout_s: float, now: float) -> None:
        """Start the time until the subscription ``held`` expires, as its last consumer left.

        The consumer had asked for an expiry of ``timeout_s`` [3.5.3]; the shorter of this time and the topology's
        counts.
        """
        kept_s = min(timeout_s, self._expiry_s(held.address))
        if kept_s < inf:
            number = self._waiting[held] = next(self._numbers)
            heapq.heappush(self._due, (now + kept_s, number, now, held))
            # Places in the heap that are valid no more are dropped: consumers that come and go would otherwise fill the
            # heap for days.
            if len(self._due) > 2 * len(self._waiting) + _SPARE:
                self._due = [due for due in self._due if self._is_waiting(due[1], due[3])]
                heapq.heapify(self._due)

    def forget(self, held: HeldQueue) -> None:
        """Stop the time until the subscription ``held`` expires: it has a consumer again, or was deleted."""
        self._waiting.pop(held, None)

    def next_deadline(self) -> float | None:
        while self._due and not self._is_waiting(self._due[0][1], self._due[0][3]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def on_time(self, now: float) -> None:
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            _, _, since, held = heapq.heappop(self._due)
            self._delete(held, now - since)

    def _is_waiting(self, number: int, held: HeldQueue) -> bool:
        if held.is_deleted:
            self.forget(held)
        return self._waiting.get(held) == number

    def _delete(self, held: HeldQueue, unused_s: float) -> None:
        self.forget(held)
        found = held.queue.snapshot()
        subscriber = held.key.text if held.key is not None else ""
        self._message_store.delete(held)
        self._log(
            SubscriptionExpired(held.address, subscriber, round(unused_s, 3), found.available_count, found.size_bytes)
        )
