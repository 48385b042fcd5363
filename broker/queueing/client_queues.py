"""Limits and expiry of the durable queues that clients make under patterns of the topology.

A queue under a pattern is made at its first use, so a client could make any number: the queues of each pattern, and
those of each user under the pattern, have a limit at each broker. A queue that no link has used for the expiry of the
pattern is deleted once it is empty; the next use makes the queue again. A queue named in the topology file is neither
counted nor deleted.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from addressing.address import Address
from addressing.queue_policy import PatternPolicy
from broker.events import QueueExpired
from broker.queueing.held_queue import HeldQueue
from broker.queueing.message_store import MessageStore
from wire.errors import LinkError
from wire.log import Emit

PolicyOf = Callable[[Address], "PatternPolicy | None"]
GRAIN = 100
"""The store has the time of a queue's last use to 1/100 of the expiry, so links that come and go cause few writes."""
SPARE = 100
LOOKS = 24
"""A queue whose expiry is over but that still has messages is looked at again after 1/24 of the expiry."""


@dataclass(slots=True, eq=False)
class _Made:
    """A durable queue under a pattern of the topology, made by a client's first use or by an operator."""

    held: HeldQueue
    policy: PatternPolicy
    used_at: float
    """When a link last attached or detached, or the queue was made; after a restart up to 1/100 of the expiry late.

    Of messages over links without an address, up to 1/100 of the expiry before the last one.
    """
    number: int = 0
    """Number of the queue's valid place in the heap ``_due``; 0 if it has none, as while links use the queue."""

    @property
    def is_in_use(self) -> bool:
        return bool(self.held.producer_count or self.held.taker_count)

    @property
    def is_empty(self) -> bool:
        return self.held.queue.is_empty and not self.held.coming_count


class ClientQueues:
    """Enforces the limits of queues that clients make under patterns, and deletes unused, empty queues under patterns.

    ``policy_of`` gives the limits of the pattern that an address is under; None where no pattern makes queues.

    Always: ``_made`` has all durable queues that a pattern made, and the counts are counts of these queues
    """

    def __init__(self, message_store: MessageStore, policy_of: PolicyOf, wall_offset_s: float, log: Emit) -> None:
        self._message_store = message_store
        self._policy_of = policy_of
        self._wall_offset_s = wall_offset_s
        self._log = log
        self._made: dict[HeldQueue, _Made] = {}
        self._by_pattern: Counter[str] = Counter()
        self._by_user: Counter[tuple[str, str | None]] = Counter()
        self._due: list[tuple[float, int, _Made]] = []
        self._numbers = itertools.count(1)

    def begin(self, now: float) -> None:
        """Count the queues under patterns that the store had at the start, and watch for queues made or deleted."""
        for held in self._message_store.every_queue():
            if held.is_durable and not held.is_subscription:
                self._add(held, now)
        self._message_store.watch(self)

    # The message store calls these methods when a durable queue, no subscription, was made or deleted.
    def on_made(self, held: HeldQueue) -> None:
        now = self._message_store.now
        self._add(held, now)

    def on_gone(self, held: HeldQueue) -> None:
        made = self._made.pop(held, None)
        if made is not None:
            made.number = 0
            self._by_pattern[made.policy.pattern] -= 1
            self._by_user[made.policy.pattern, held.owner] -= 1

    # The attach and detach of links call these methods.
    def admit(self, address: Address, user: str | None) -> None:
        """Raise LinkError if a new queue at ``address`` would exceed the limit of its pattern, or of the user under it.

        ``user`` is None for a node or an operator, for which only the pattern's limit holds.
        """
        policy = self._policy_of(address)
        if policy is None:
            return
        of_user, of_all = self._by_user[policy.pattern, user], self._by_pattern[policy.pattern]
        if user is not None and of_user >= policy.max_queues_per_user:
            raise LinkError(
                "amqp:resource-limit-exceeded",
                f"user {user!r} has {of_user:,} queues under {policy.pattern!r} on this broker, the most "
                f"that a user may have (max_queues_per_user): cannot make queue {address.text!r}",
            )
        if of_all >= policy.max_queues:
            raise LinkError(
                "amqp:resource-limit-exceeded",
                f"there are {of_all:,} queues under {policy.pattern!r} on this broker, the most that are "
                f"allowed (max_queues): cannot make queue {address.text!r}",
            )

    def on_used(self, held: HeldQueue, now: float) -> None:
        """Note a use of a queue: a link attached or detached, or a message came over a link without an address.

        Such messages count once in 1/100 of the expiry. The queue's time until expiry stops while links use the queue,
        and starts anew once none does.
        """
        made = self._made.get(held)
        if made is not None:
            self._note_use(made, now)

    # Expiry
    def next_deadline(self) -> float | None:
        while self._due and self._due[0][2].number != self._due[0][1]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def on_time(self, now: float) -> None:
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            made = heapq.heappop(self._due)[2]
            made.number = 0
            if made.used_at + made.policy.expiry_s > now:
                self._await(made, made.used_at + made.policy.expiry_s)
            elif not made.is_empty:
                self._await(made, now + made.policy.expiry_s / LOOKS)
            elif not made.is_in_use:
                self._message_store.delete(made.held)
                self._log(QueueExpired(made.held.address, made.held.owner, round(now - made.used_at, 3)))

    # Internal
    def _add(self, held: HeldQueue, now: float) -> None:
        policy = self._policy_of(Address.parse(held.address))
        if policy is None:
            return
        row = held.row
        assert row is not None
        made = _Made(held, policy, now)
        if row.used_at_s:
            made.used_at = min(now, row.used_at_s + policy.expiry_s / GRAIN - self._wall_offset_s)
        self._made[held] = made
        self._by_pattern[policy.pattern] += 1
        self._by_user[policy.pattern, held.owner] += 1
        if not row.used_at_s:
            self._note_use(made, now)
        else:
            self._await(made, made.used_at + policy.expiry_s)

    def _note_use(self, made: _Made, now: float) -> None:
        made.used_at = now
        made.held.use_due_s = now + made.policy.expiry_s / GRAIN
        row = made.held.row
        wall_s = int(now + self._wall_offset_s)
        if row is not None and wall_s - row.used_at_s >= made.policy.expiry_s / GRAIN:
            self._message_store.note_use(made.held, wall_s)
        if made.is_in_use:
            made.number = 0
        elif made.number == 0:
            self._await(made, now + made.policy.expiry_s)

    def _await(self, made: _Made, deadline: float) -> None:
        made.number = next(self._numbers)
        heapq.heappush(self._due, (deadline, made.number, made))
        # Once most places in the heap are no longer valid, these are dropped: links that come and go would otherwise
        # fill the heap until the expiry of the queues, a day by default.
        if len(self._due) > 2 * len(self._made) + SPARE:
            self._due = [due for due in self._due if due[2].number == due[1]]
            heapq.heapify(self._due)
