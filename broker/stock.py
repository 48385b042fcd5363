"""All queues and subscriptions of a broker, and the messages in them.

Carries out what the queues ask: deliveries go to the consumers, changes to the open batch. One message lies in any
number of queues; its body goes when the last of them has done with it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from broker.commit import Commits
from broker.message import Entry, Message
from broker.queue import MARK_STRIDE, Action, Archive, Deliver, Queue, QueueSnapshot, Recount, WantMark
from broker.shelf import Shelf
from broker.store.batch import Inventory, QueueKind, QueueRow
from broker.topic import SubscriptionTree


class SubscriptionKey(NamedTuple):
    """Who subscribes: routers all show the mesh's name, and put the client's container-id before the link name."""

    container_id: str
    link_name: str


class Consumer(Protocol):
    """An outgoing link that takes from a queue."""

    consumer_id: int

    def take(self, entry: Entry) -> None: ...

    def pump(self, now: float) -> None: ...


@dataclass(slots=True, eq=False)
class HeldQueue:
    """A queue with its name and those attached to it.

    ``row`` is what the store knows of it; None for one that lives in memory only.
    ``is_probe``: in memory too, but its messages are written, without an entry: the next start forgets them.
    ``key`` is set for subscriptions; ``address`` is then the filter.
    """

    address: str
    queue: Queue
    row: QueueRow | None = None
    key: SubscriptionKey | None = None
    is_subscription: bool = False
    is_probe: bool = False
    consumers: dict[int, Consumer] = field(default_factory=dict)
    producer_count: int = 0
    due_s: float | None = None
    written_mark: int = 0
    is_deleted: bool = False

    @property
    def is_durable(self) -> bool:
        return self.row is not None

    @property
    def is_written(self) -> bool:
        """Its messages wait for the disk."""
        return self.row is not None or self.is_probe

    @property
    def is_temporary(self) -> bool:
        """A queue made by whoever used it first."""
        return self.row is None and not self.is_subscription

    @property
    def is_forsaken(self) -> bool:
        """A subscription without its link, or a temporary queue that nobody uses and that holds nothing."""
        if self.is_durable or self.queue.is_used or self.producer_count:
            return False
        return self.is_subscription or self.queue.is_empty


@dataclass(frozen=True, slots=True)
class QueueSummary:
    address: str
    is_subscription: bool
    is_durable: bool
    subscriber: str | None
    queue: QueueSnapshot


class Stock:
    """Owns queues, subscriptions and messages.

    Always: ``message.references`` is the number of entries and copies under way of it
    Always: a row is only deleted after the batch that wrote it
    """

    def __init__(self, commits: Commits, shelf: Shelf, wall_offset_s: float) -> None:
        self._commits = commits
        self._shelf = shelf
        self._wall_offset_s = wall_offset_s
        self.to_pump: dict[Consumer, None] = {}
        """Consumers that may have something to write."""
        self._queues: dict[str, HeldQueue] = {}
        self._subscriptions: SubscriptionTree[HeldQueue] = SubscriptionTree()
        self._subscribers: dict[SubscriptionKey, HeldQueue] = {}
        self._every: dict[HeldQueue, None] = {}
        self._due: list[tuple[float, int, HeldQueue]] = []
        self._next_message_id = 1
        self._next_queue_id = 1
        self._next_consumer_id = 1
        self._serial = 0

    # Opening and closing

    def stock(self, inventory: Inventory, now: float) -> None:
        """Take over what the store holds."""
        by_id: dict[int, HeldQueue] = {}
        for row in inventory.queues:
            by_id[row.queue_id] = self._add_from(row)
            self._next_queue_id = row.queue_id + 1
        messages: dict[int, Message] = {}
        for message_id, size_bytes, expires_at_ms, is_large in inventory.messages:
            expires_at_s = None if expires_at_ms is None else expires_at_ms / 1000 - self._wall_offset_s
            messages[message_id] = Message(message_id, size_bytes, True, is_large, expires_at_s)
            self._next_message_id = message_id + 1
        for queue_id, message_id, delivery_count in inventory.entries:
            messages[message_id].references += 1
            self._enqueue(by_id[queue_id], messages[message_id], now, delivery_count)

    def close(self) -> None:
        """After the last delivery: nothing will have been seen unknown to the store. Written with the open batch."""
        for held in self._every:
            if held.row is not None:
                self._commits.write.marks[held.row.queue_id] = 0

    # Queues and subscriptions

    def queue(self, address: str) -> HeldQueue:
        """The durable queue of this address, made when it is first asked for."""
        held = self._queues.get(address)
        if held is None:
            row = QueueRow(self._new_queue_id(), QueueKind.QUEUE, address)
            self._commits.write.queues.append(row)
            held = self._add_from(row)
        return held

    def temporary_queue(self, address: str, *, is_probe: bool = False) -> HeldQueue:
        """A queue that nobody else may rely on: in memory, gone when unused."""
        held = self._queues.get(address)
        if held is None:
            held = self._queues[address] = self._add(HeldQueue(address, Queue(is_durable=False), is_probe=is_probe))
        return held

    def existing_queue(self, address: str) -> HeldQueue | None:
        return self._queues.get(address)

    def subscribe(self, filter_: str) -> HeldQueue:
        """A subscription that ends with its link."""
        held = self._add(HeldQueue(filter_, Queue(is_durable=False), is_subscription=True))
        self._subscriptions.add(filter_, held)
        return held

    def subscribe_durably(self, filter_: str, key: SubscriptionKey) -> HeldQueue:
        """The durable subscription of this subscriber; one to another filter gives way."""
        held = self._subscribers.get(key)
        if held is not None and held.address == filter_:
            return held
        if held is not None:
            self.delete(held)
        row = QueueRow(self._new_queue_id(), QueueKind.SUBSCRIPTION, filter_, *key)
        self._commits.write.queues.append(row)
        return self._add_from(row)

    def durable_subscription(self, key: SubscriptionKey) -> HeldQueue | None:
        return self._subscribers.get(key)

    def matching(self, address: str) -> list[HeldQueue]:
        return self._subscriptions.matching(address)

    def delete(self, held: HeldQueue) -> None:
        """With all its messages, held by consumers or not."""
        held.is_deleted = True
        del self._every[held]
        if held.is_subscription:
            self._subscriptions.remove(held.address, held)
        else:
            del self._queues[held.address]
        if held.key is not None:
            del self._subscribers[held.key]
        self.carry_out(held, held.queue.drop_all())
        # What is under way to it is neither given nor kept: the row takes its entries along.
        if held.row is not None:
            self._commits.write.marks.pop(held.row.queue_id, None)
            self._commits.write.dropped_queues.append(held.row.queue_id)

    # Messages

    def new_message_id(self) -> int:
        self._next_message_id += 1
        return self._next_message_id - 1

    def new_consumer_id(self) -> int:
        self._next_consumer_id += 1
        return self._next_consumer_id - 1

    def write(self, message: Message, body: bytes | None, targets: Sequence[HeldQueue]) -> None:
        """Put a message that is meant for ``targets`` into the open batch, where one of them wants that.

        ``body`` is None for a large one, whose pieces are in the batch already. Promise ``on_written`` next.
        """
        message.references = len(targets)
        if body is not None:
            self._shelf.pin(message.message_id, body)
        if message.is_stored:
            self._write(message, body, targets)
        elif message.is_large:
            self._commits.write.finished.append(message.message_id)

    def on_written(self, message: Message, targets: Sequence[HeldQueue], now: float) -> None:
        """Let it into its queues."""
        if message.is_stored and not message.is_large:
            self._shelf.unpin(message.message_id)
        for held in targets:
            if held.is_deleted:
                self.release(message)
            else:
                self._enqueue(held, message, now)

    def discard_large(self, message_id: int) -> None:
        """Pieces of it were written, but it never became a message."""
        self._commits.write.unlinked.append(message_id)

    def release(self, message: Message) -> None:
        """One use less of its body."""
        message.references -= 1
        if message.references:
            return
        self._shelf.forget(message.message_id)
        if message.is_stored:
            self._commits.write.dropped_messages.append(message.message_id)
        if message.is_large:
            self._commits.write.unlinked.append(message.message_id)

    def carry_out(self, held: HeldQueue, actions: Iterable[Action]) -> None:
        write = self._commits.write
        row = held.row
        for action in actions:
            match action:
                case Deliver(consumer_id, entry):
                    entry.message.references += 1
                    held.consumers[consumer_id].take(entry)
                case Archive(entry, _):
                    if row is not None and entry.message.is_stored:
                        write.archived.setdefault(row.queue_id, []).append(entry.message_id)
                    self.release(entry.message)
                case Recount(entry):
                    if row is not None and entry.message.is_stored:
                        write.counts[row.queue_id, entry.message_id] = entry.delivery_count
                case WantMark(message_id):
                    self._raise_mark(held, message_id)

    def pump(self, now: float) -> None:
        while self.to_pump:
            consumer = next(iter(self.to_pump))
            del self.to_pump[consumer]
            consumer.pump(now)

    # Time

    def next_deadline(self) -> float | None:
        while self._due and (self._due[0][2].is_deleted or self._due[0][2].due_s != self._due[0][0]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def on_time(self, now: float) -> None:
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            held = heapq.heappop(self._due)[2]
            held.due_s = None
            self.carry_out(held, held.queue.on_time(now))
            self._await_deadline(held, held.queue.next_deadline())
            if held.is_forsaken:
                self.delete(held)

    def summaries(self) -> tuple[QueueSummary, ...]:
        return tuple(
            QueueSummary(
                held.address,
                held.is_subscription,
                held.is_durable,
                f"{held.key.container_id}|{held.key.link_name}" if held.key else None,
                held.queue.snapshot(),
            )
            for held in self._every
        )

    # Within

    def _add(self, held: HeldQueue) -> HeldQueue:
        self._every[held] = None
        return held

    def _add_from(self, row: QueueRow) -> HeldQueue:
        if row.kind is QueueKind.QUEUE:
            held = self._queues[row.address] = HeldQueue(row.address, Queue(), row)
            return self._add(held)
        key = SubscriptionKey(row.container_id, row.link_name)
        held = self._subscribers[key] = HeldQueue(row.address, Queue(), row, key, is_subscription=True)
        self._subscriptions.add(row.address, held)
        return self._add(held)

    def _new_queue_id(self) -> int:
        self._next_queue_id += 1
        return self._next_queue_id - 1

    def _write(self, message: Message, body: bytes | None, targets: Sequence[HeldQueue]) -> None:
        write, message_id, expires_at_s = self._commits.write, message.message_id, message.expires_at_s
        expires_at_ms = None if expires_at_s is None else int((expires_at_s + self._wall_offset_s) * 1000)
        write.messages.append((message_id, message.size_bytes, expires_at_ms, body))
        if body is None:
            write.sealed.append(message_id)
        else:
            self._commits.note_bytes(message.size_bytes)
        for held in targets:
            if held.row is None:
                continue
            write.entries.append((held.row.queue_id, message_id, 0))
            if message_id > held.written_mark and held.queue.is_hungry:
                # Raised along with the message, so that giving it needs no second sync.
                self._raise_mark(held, message_id + MARK_STRIDE)

    def _raise_mark(self, held: HeldQueue, message_id: int) -> None:
        """Never lower it: what it covers may have been given already."""
        assert held.row is not None
        if message_id > held.written_mark:
            held.written_mark = message_id
            self._commits.write.marks[held.row.queue_id] = message_id
        self._commits.promise(partial(self._on_mark, held, message_id))

    def _on_mark(self, held: HeldQueue, message_id: int, now: float) -> None:
        self.carry_out(held, held.queue.on_mark(message_id, now))

    def _enqueue(self, held: HeldQueue, message: Message, now: float, delivery_count: int = 0) -> None:
        self.carry_out(held, held.queue.enqueue(message, now, delivery_count))
        self._await_deadline(held, message.expires_at_s)

    def _await_deadline(self, held: HeldQueue, deadline_s: float | None) -> None:
        if deadline_s is not None and (held.due_s is None or deadline_s < held.due_s):
            held.due_s = deadline_s
            self._serial += 1
            heapq.heappush(self._due, (deadline_s, self._serial, held))
