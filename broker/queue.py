"""Which consumer gets which message of one queue, and when is a message done with?

Sans-IO. Feed it inputs; carry out the actions it returns, in order.
Spec:  AMQP 1.0 [3.3] distribution nodes and message states, [3.4] outcomes.
Units: credit is a number of deliveries; times are monotonic seconds.

        enqueue          give                    ACCEPTED, REJECTED
    ---------------> AVAILABLE ------> ACQUIRED ---------------------> ARCHIVED
                      ^  |   RELEASED, FAILED |                          ^
                      |  +--------------------+--- past its deadline ----+
                      +-----------------------+

The **seen mark**: after kill -9 nobody remembers who had been given what, yet a second sight must show a delivery-count
of 1 or more. So a stored message is only given once the store holds a mark at or above its id, and a store that was
not closed raises the count of everything up to the mark. The mark moves in strides: one small write per MARK_STRIDE.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import NamedTuple

from broker.message import Entry, Message, State
from wire.errors import LocalStateError

MARK_STRIDE = 1000


class Verdict(Enum):
    """What a consumer's settlement means for the queue."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    FAILED = "failed"


class Departure(Enum):
    """Why a message left the queue."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    DROPPED = "dropped"


class Deliver(NamedTuple):
    """Send this entry to this consumer; a browser gets a copy that it need not give back."""

    consumer_id: int
    entry: Entry


class Archive(NamedTuple):
    """The entry is gone from the queue: forget it on disk too."""

    entry: Entry
    departure: Departure


class Recount(NamedTuple):
    """The entry's delivery-count changed: write it down."""

    entry: Entry


class WantMark(NamedTuple):
    """Write the seen mark down, then call ``on_mark``: until then nothing above the old one is given."""

    message_id: int


Action = Deliver | Archive | Recount | WantMark


@dataclass(slots=True)
class Consumer:
    """``credit`` is how many deliveries it may still be given; ``acquired`` what it holds, by position."""

    consumer_id: int
    credit: int = 0
    acquired: dict[int, Entry] = field(default_factory=dict)


@dataclass(slots=True)
class Browser:
    consumer_id: int
    ahead: deque[Entry]
    credit: int = 0


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    available_count: int
    acquired_count: int
    size_bytes: int
    consumer_count: int
    browser_count: int
    enqueued_total: int
    departed_total: dict[str, int]


class Queue:
    """Competing consumers over one line of messages, in order of arrival.

    Always: every entry of ``_fresh`` and ``_returned`` is AVAILABLE or ARCHIVED (swept when it comes to the front)
    Always: every ACQUIRED entry is in exactly one consumer's ``acquired``
    Always: ``_ready`` holds exactly the consumers with credit, least recently served first
    """

    def __init__(self, *, is_durable: bool = True) -> None:
        self._is_durable = is_durable
        self._fresh: deque[Entry] = deque()
        self._returned: list[tuple[int, Entry]] = []
        self._consumers: dict[int, Consumer] = {}
        self._ready: dict[int, Consumer] = {}
        self._browsers: dict[int, Browser] = {}
        self._deadlines: list[tuple[float, int, Entry]] = []
        self._next_position = 0
        self._available_count = 0
        self._acquired_count = 0
        self._size_bytes = 0
        self._mark = 0
        self._wanted_mark = 0
        self._departed = dict.fromkeys(Departure, 0)

    # Messages

    def enqueue(self, message: Message, now: float, delivery_count: int = 0) -> list[Action]:
        entry = Entry(message, self._next_position, delivery_count)
        self._next_position += 1
        self._fresh.append(entry)
        self._available_count += 1
        self._size_bytes += message.size_bytes
        if message.expires_at_s is not None:
            self._await_deadline(message.expires_at_s, entry)
        for browser in self._browsers.values():
            browser.ahead.append(entry)
        return self._dispatch(now)

    def settle(
        self, consumer_id: int, entry: Entry, verdict: Verdict, now: float, *, shun: bool = False
    ) -> list[Action]:
        """Apply what the consumer said of an entry it was given; ``shun``: never to this consumer again. [3.4.5]"""
        held = self._consumers[consumer_id].acquired
        if held.get(entry.position) is not entry:
            raise LocalStateError(f"consumer {consumer_id} does not hold the message at {entry.position}")
        del held[entry.position]
        if shun:
            entry.shunned_by |= {consumer_id}
        return self._conclude(entry, verdict, now) + self._dispatch(now)

    def on_mark(self, message_id: int, now: float) -> list[Action]:
        """The store holds this mark."""
        if message_id <= self._mark:
            return []
        self._mark = message_id
        return self._dispatch(now)

    def drop_all(self) -> list[Action]:
        """Archive everything, held or not: the queue is being deleted."""
        every = self._in_order()
        for consumer in self._consumers.values():
            every += consumer.acquired.values()
            self._acquired_count -= len(consumer.acquired)
            self._available_count += len(consumer.acquired)
            consumer.acquired.clear()
        return [self._archive(entry, Departure.DROPPED) for entry in every]

    # Consumers

    def attach(self, consumer_id: int) -> None:
        self._refuse_twice(consumer_id)
        self._consumers[consumer_id] = Consumer(consumer_id)

    def attach_browser(self, consumer_id: int) -> None:
        """It will see what is here now and what comes while it stays, but take nothing."""
        self._refuse_twice(consumer_id)
        self._browsers[consumer_id] = Browser(consumer_id, deque(self._in_order()))

    def detach(self, consumer_id: int, unwritten: Iterable[Entry], now: float) -> list[Action]:
        """The consumer is gone: the unwritten comes back unchanged, the rest with delivery-count raised."""
        if self._browsers.pop(consumer_id, None) is not None:
            return []
        consumer = self._consumers.pop(consumer_id)
        self._ready.pop(consumer_id, None)
        untouched = {entry.position for entry in unwritten}
        actions: list[Action] = []
        for entry in consumer.acquired.values():
            verdict = Verdict.RELEASED if entry.position in untouched else Verdict.FAILED
            actions += self._conclude(entry, verdict, now)
        return actions + self._dispatch(now)

    def set_credit(self, consumer_id: int, credit: int, now: float) -> list[Action]:
        """How many deliveries the consumer may be given from now on."""
        browser = self._browsers.get(consumer_id)
        if browser is not None:
            browser.credit = credit
            return self._browse(browser, now)
        consumer = self._consumers[consumer_id]
        consumer.credit = credit
        if credit > 0:
            self._ready.setdefault(consumer_id, consumer)
        else:
            self._ready.pop(consumer_id, None)
        return self._dispatch(now)

    def is_dry_for(self, consumer_id: int, now: float) -> bool:
        """Nothing here that this consumer could be given: a drain may be answered. [2.6.7]"""
        browser = self._browsers.get(consumer_id)
        if browser is not None:
            return not any(entry.state is State.AVAILABLE for entry in browser.ahead)
        waiting = chain((entry for _, entry in self._returned), self._fresh)
        return not any(
            entry.state is State.AVAILABLE and consumer_id not in entry.shunned_by and not entry.message.is_expired(now)
            for entry in waiting
        )

    @property
    def is_used(self) -> bool:
        return bool(self._consumers or self._browsers)

    @property
    def is_hungry(self) -> bool:
        """A consumer has credit: what comes next is given at once."""
        return bool(self._ready)

    @property
    def is_empty(self) -> bool:
        return self._available_count + self._acquired_count == 0

    # Time

    def next_deadline(self) -> float | None:
        while self._deadlines and self._deadlines[0][2].state is State.ARCHIVED:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def on_time(self, now: float) -> list[Action]:
        """Archive what is past its deadline. What a consumer holds is left to it, and looked at when it comes back."""
        actions: list[Action] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            entry = heapq.heappop(self._deadlines)[2]
            if entry.state is State.AVAILABLE:
                actions.append(self._archive(entry, Departure.EXPIRED))
        return actions

    def snapshot(self) -> QueueSnapshot:
        return QueueSnapshot(
            available_count=self._available_count,
            acquired_count=self._acquired_count,
            size_bytes=self._size_bytes,
            consumer_count=len(self._consumers),
            browser_count=len(self._browsers),
            enqueued_total=self._next_position,
            departed_total={departure.value: count for departure, count in self._departed.items()},
        )

    # Within

    def _refuse_twice(self, consumer_id: int) -> None:
        if consumer_id in self._consumers or consumer_id in self._browsers:
            raise LocalStateError(f"consumer {consumer_id} is attached already")

    def _in_order(self) -> list[Entry]:
        waiting = chain((entry for _, entry in self._returned), self._fresh)
        return sorted((e for e in waiting if e.state is State.AVAILABLE), key=lambda entry: entry.position)

    def _await_deadline(self, expires_at_s: float, entry: Entry) -> None:
        heapq.heappush(self._deadlines, (expires_at_s, entry.position, entry))
        # Messages consumed long before their deadline would otherwise stay here until it.
        if len(self._deadlines) > 2 * (self._available_count + self._acquired_count) + MARK_STRIDE:
            self._deadlines = [due for due in self._deadlines if due[2].state is not State.ARCHIVED]
            heapq.heapify(self._deadlines)

    def _conclude(self, entry: Entry, verdict: Verdict, now: float) -> list[Action]:
        """An acquired entry has left its consumer's hands."""
        self._acquired_count -= 1
        self._available_count += 1
        entry.state = State.AVAILABLE
        match verdict:
            case Verdict.ACCEPTED:
                return [self._archive(entry, Departure.ACCEPTED)]
            case Verdict.REJECTED:
                return [self._archive(entry, Departure.REJECTED)]
            case Verdict.FAILED:
                entry.delivery_count += 1
        if entry.message.is_expired(now):
            return [self._archive(entry, Departure.EXPIRED)]
        heapq.heappush(self._returned, (entry.position, entry))
        return [Recount(entry)] if verdict is Verdict.FAILED else []

    def _archive(self, entry: Entry, departure: Departure) -> Archive:
        entry.state = State.ARCHIVED
        self._available_count -= 1
        self._size_bytes -= entry.message.size_bytes
        self._departed[departure] += 1
        return Archive(entry, departure)

    def _dispatch(self, now: float) -> list[Action]:
        actions: list[Action] = []
        if not self._browsers and not (self._ready and (self._fresh or self._returned)):
            return actions
        for browser in self._browsers.values():
            actions += self._browse(browser, now)
        passed_over: list[Entry] = []
        while self._ready:
            entry = self._pop_front(now, actions)
            if entry is None:
                break
            consumer = self._choose(entry)
            if consumer is None:
                passed_over.append(entry)
            elif self._is_unmarked(entry):
                passed_over.append(entry)
                actions += self._want_mark(entry)
                break
            else:
                actions.append(self._give(entry, consumer))
        for entry in passed_over:
            heapq.heappush(self._returned, (entry.position, entry))
        return actions

    def _pop_front(self, now: float, actions: list[Action]) -> Entry | None:
        while self._returned or self._fresh:
            if self._returned and not (self._fresh and self._fresh[0].position < self._returned[0][0]):
                entry = heapq.heappop(self._returned)[1]
            else:
                entry = self._fresh.popleft()
            if entry.state is State.ARCHIVED:
                continue
            if not entry.message.is_expired(now):
                return entry
            actions.append(self._archive(entry, Departure.EXPIRED))
        return None

    def _choose(self, entry: Entry) -> Consumer | None:
        """The consumer with credit that was served longest ago, among those that would take this entry."""
        for consumer in self._ready.values():
            if consumer.consumer_id not in entry.shunned_by:
                return consumer
        return None

    def _give(self, entry: Entry, consumer: Consumer) -> Deliver:
        entry.state = State.ACQUIRED
        self._available_count -= 1
        self._acquired_count += 1
        consumer.acquired[entry.position] = entry
        consumer.credit -= 1
        del self._ready[consumer.consumer_id]
        if consumer.credit > 0:
            self._ready[consumer.consumer_id] = consumer
        return Deliver(consumer.consumer_id, entry)

    def _is_unmarked(self, entry: Entry) -> bool:
        return self._is_durable and entry.message.is_stored and entry.message_id > self._mark and not entry.was_seen

    def _want_mark(self, entry: Entry) -> list[Action]:
        if self._wanted_mark >= entry.message_id:
            return []
        self._wanted_mark = entry.message_id + MARK_STRIDE
        return [WantMark(self._wanted_mark)]

    def _browse(self, browser: Browser, now: float) -> list[Action]:
        actions: list[Action] = []
        while browser.credit > 0 and browser.ahead:
            entry = browser.ahead.popleft()
            if entry.state is State.AVAILABLE and not entry.message.is_expired(now):
                browser.credit -= 1
                actions.append(Deliver(browser.consumer_id, entry))
        return actions
