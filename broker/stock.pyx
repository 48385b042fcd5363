"""All queues and subscriptions of a broker, and the messages in them.

Carries out what the queues ask: deliveries go to the consumers, changes to the open batch. One message lies in any
number of queues; its body goes when the last of them has done with it.
"""

from libc.math cimport INFINITY

from broker.action cimport Archive, Deliver, Recount, WantMark
from broker.commit cimport Commits, Promise
from broker.message cimport Entry, Message
from broker.queue cimport Queue
from broker.shelf cimport Shelf

import heapq
from dataclasses import dataclass
from typing import NamedTuple

from broker.action import Departure
from broker.queue import MARK_STRIDE, QueueSnapshot
from broker.store.batch import QueueKind, QueueRow
from broker.topic import SubscriptionTree

cdef long long _STRIDE = MARK_STRIDE
cdef object _PURGED = Departure.PURGED


class SubscriptionKey(NamedTuple):
    """Who subscribes: routers all show the mesh's name, and put the client's container-id before the link name."""

    container_id: str
    link_name: str


cdef class Taker(DeliveryOwner):
    cdef int take(self, Entry entry) except -1:
        raise NotImplementedError

    cdef int pump(self, double now) except -1:
        raise NotImplementedError


cdef class HeldQueue:
    """A queue with its name and those attached to it.

    ``row`` is what the store knows of it; None for one that lives in memory only.
    ``is_probe``: in memory too, but its messages are written, without an entry: the next start forgets them.
    ``key`` is set for subscriptions; ``address`` is then the filter.
    """

    def __init__(self, address, queue, row=None, key=None, is_subscription=False, is_probe=False):
        self.address, self.queue = address, queue
        self.row, self.key = row, key
        self.queue_id = None if row is None else row.queue_id
        self.is_subscription, self.is_probe = is_subscription, is_probe
        self.consumers = {}
        self.due_s = INFINITY

    def add_consumer(self, Taker taker not None):
        self.consumers[taker.consumer_id] = taker

    def drop_consumer(self, Taker taker not None):
        del self.consumers[taker.consumer_id]

    @property
    def subscriber(self):
        """Whose durable subscription it is, as people write it; None for what is none."""
        return None if self.key is None else f"{self.key.container_id}|{self.key.link_name}"

    @property
    def is_durable(self):
        return self.row is not None

    @property
    def is_written(self):
        """Its messages wait for the disk."""
        return self.is_written_now()

    cdef bint is_written_now(self) noexcept:
        return self.row is not None or self.is_probe

    @property
    def is_temporary(self):
        """A queue made by whoever used it first."""
        return self.row is None and not self.is_subscription

    @property
    def is_forsaken(self):
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


cdef class _Marked(Promise):
    """The store holds this seen mark."""

    cdef Stock stock
    cdef HeldQueue held
    cdef long long message_id

    def __cinit__(self, Stock stock, HeldQueue held, long long message_id):
        self.stock, self.held, self.message_id = stock, held, message_id

    cdef int keep(self, double now) except -1:
        return self.stock.carry_out(self.held, self.held.queue.on_mark(self.message_id, now))


cdef class Stock:
    """Owns queues, subscriptions and messages. ``now`` is the time of the input that is being worked on.

    Always: ``message.references`` is the number of entries and copies under way of it
    Always: a row is only deleted after the batch that wrote it
    Always: ``to_pump`` has the consumers that may have something to write
    """

    def __init__(self, Commits commits not None, Shelf shelf not None, double wall_offset_s):
        self.commits, self.shelf, self.wall_offset_s = commits, shelf, wall_offset_s
        self.to_pump = {}
        self.queues, self.subscribers, self.every = {}, {}, {}
        self.subscriptions = SubscriptionTree()
        self.due = []
        self.next_message_id = self.next_queue_id = self.next_consumer_id = 1

    # Opening and closing

    def stock(self, inventory, double now):
        """Take over what the store holds."""
        by_id = {}
        messages = {}
        for row in inventory.queues:
            by_id[row.queue_id] = self._add_from(row)
            self.next_queue_id = row.queue_id + 1
        for message_id, size_bytes, expires_at_ms, is_large in inventory.messages:
            expires_at_s = None if expires_at_ms is None else expires_at_ms / 1000 - self.wall_offset_s
            messages[message_id] = Message(message_id, size_bytes, True, is_large, expires_at_s)
        self.next_message_id = inventory.next_message_id
        for queue_id, message_id, delivery_count in inventory.entries:
            (<Message>messages[message_id]).references += 1
            self._enqueue(by_id[queue_id], messages[message_id], now, delivery_count)

    def close(self):
        """After the last delivery: nothing will have been seen unknown to the store. Written with the open batch."""
        for held in self.every:
            if held.row is not None:
                self.commits.write.marks[held.row.queue_id] = 0

    # Queues and subscriptions

    def queue(self, address):
        """The durable queue of this address, made when it is first asked for."""
        held = self.queues.get(address)
        if held is None:
            row = QueueRow(self._new_queue_id(), QueueKind.QUEUE, address)
            self.commits.write.queues.append(row)
            held = self._add_from(row)
        return held

    def temporary_queue(self, address, *, is_probe=False):
        """A queue that nobody else may rely on: in memory, gone when unused."""
        held = self.queues.get(address)
        if held is None:
            held = self.queues[address] = self._add(HeldQueue(address, Queue(is_durable=False), is_probe=is_probe))
        return held

    def existing_queue(self, address):
        return self.queues.get(address)

    def subscribe(self, filter_):
        """A subscription that ends with its link."""
        held = self._add(HeldQueue(filter_, Queue(is_durable=False), is_subscription=True))
        self.subscriptions.add(filter_, held)
        return held

    def subscribe_durably(self, filter_, key):
        """The durable subscription of this subscriber; one to another filter gives way."""
        held = self.subscribers.get(key)
        if held is not None and held.address == filter_:
            return held
        if held is not None:
            self.delete(held)
        row = QueueRow(self._new_queue_id(), QueueKind.SUBSCRIPTION, filter_, *key)
        self.commits.write.queues.append(row)
        return self._add_from(row)

    def durable_subscription(self, key):
        return self.subscribers.get(key)

    def every_queue(self):
        """Subscriptions too, in the order in which they were made."""
        return list(self.every)

    def matching(self, address):
        return self.subscriptions.matching(address)

    def delete(self, HeldQueue held not None):
        """With all its messages, held by consumers or not."""
        held.is_deleted = True
        del self.every[held]
        if held.is_subscription:
            self.subscriptions.remove(held.address, held)
        else:
            del self.queues[held.address]
        if held.key is not None:
            del self.subscribers[held.key]
        self.carry_out(held, held.queue.drop_all())
        # What is under way to it is neither given nor kept: the row takes its entries along.
        if held.row is not None:
            self.commits.write.marks.pop(held.row.queue_id, None)
            self.commits.write.dropped_queues.append(held.row.queue_id)

    # Messages

    cdef long long new_message_id(self) noexcept:
        self.next_message_id += 1
        return self.next_message_id - 1

    cdef long long new_passing_id(self) noexcept:
        """Of a message that is not stored: what is, has consecutive ids, and lies together."""
        self.last_passing_id -= 1
        return self.last_passing_id

    cdef long new_consumer_id(self) noexcept:
        self.next_consumer_id += 1
        return self.next_consumer_id - 1

    cdef int write(self, Message message, bytes body, list targets) except -1:
        """Put a message that is meant for ``targets`` into the open batch, where one of them wants that.

        ``body`` is None for a large one, whose pieces are in the batch already. Promise ``on_written`` next.
        """
        message.references = len(targets)
        if body is not None:
            self.shelf.pin(message, body)
        if message.is_stored:
            self._write(message, body, targets)
        elif message.is_large:
            self.commits.write.finished.append(message.message_id)
        return 0

    cdef int on_written(self, Message message, list targets, double now) except -1:
        """Let it into its queues."""
        cdef HeldQueue held
        if message.is_stored and not message.is_large:
            self.shelf.unpin(message)
        for held in targets:
            if held.row is not None:
                held.coming_count -= 1
            if held.is_deleted:
                self.release(message)
            else:
                self._enqueue(held, message, now)
        return 0

    def purge(self, HeldQueue held not None, long limit, long long before, double now):
        """Drop up to ``limit`` that wait in it and came before position ``before``; how many."""
        cdef long long purged = held.queue.departed[_PURGED]
        self.carry_out(held, held.queue.take_available(limit, before, _PURGED, now))
        return held.queue.departed[_PURGED] - purged

    def put(self, HeldQueue held not None, bytes body, double ttl_s):
        """Into a queue in memory: a message of the broker's own."""
        cdef Message message = Message(self.new_passing_id(), len(body), False, False, self.now + ttl_s)
        message.references = 1
        self.shelf.pin(message, body)
        self._enqueue(held, message, self.now)

    cdef int discard_large(self, long long message_id) except -1:
        """Pieces of it were written, but it never became a message."""
        self.commits.write.unlinked.append(message_id)
        return 0

    cdef int release(self, Message message) except -1:
        """One use less of its body."""
        message.references -= 1
        if message.references:
            return 0
        self.shelf.forget(message)
        if message.is_stored:
            self.commits.write.dropped_messages.append(message.message_id)
        if message.is_large:
            self.commits.write.unlinked.append(message.message_id)
        return 0

    cdef int carry_out(self, HeldQueue held, list actions) except -1:
        cdef Entry entry
        for action in actions:
            if type(action) is Deliver:
                entry = (<Deliver>action).entry
                entry.message.references += 1
                (<Taker>held.consumers[(<Deliver>action).consumer_id]).take(entry)
            elif type(action) is Archive:
                entry = (<Archive>action).entry
                if held.row is not None and entry.message.is_stored:
                    self.commits.write.archived.setdefault(held.queue_id, []).append(entry.message.message_id)
                self.release(entry.message)
            elif type(action) is Recount:
                entry = (<Recount>action).entry
                if held.row is not None and entry.message.is_stored:
                    self.commits.write.counts[held.queue_id, entry.message.message_id] = entry.delivery_count
            else:
                self._raise_mark(held, (<WantMark?>action).message_id)
        return 0

    def pump(self, double now):
        cdef Taker taker
        while self.to_pump:
            taker = next(iter(self.to_pump))
            del self.to_pump[taker]
            taker.pump(now)

    # Time

    def next_deadline(self):
        while self.due and (self.due[0][2].is_deleted or (<HeldQueue>self.due[0][2]).due_s != self.due[0][0]):
            heapq.heappop(self.due)
        return self.due[0][0] if self.due else None

    def on_time(self, double now):
        cdef HeldQueue held
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            held = heapq.heappop(self.due)[2]
            held.due_s = INFINITY
            self.carry_out(held, held.queue.on_time(now))
            self._await_deadline(held, held.queue.deadline_now())
            if held.is_forsaken:
                self.delete(held)

    def summaries(self):
        return tuple(
            QueueSummary(held.address, held.is_subscription, held.is_durable, held.subscriber, held.queue.snapshot())
            for held in self.every
        )

    # Within

    def _add(self, held):
        self.every[held] = None
        return held

    def _add_from(self, row):
        if row.kind is QueueKind.QUEUE:
            held = self.queues[row.address] = HeldQueue(row.address, Queue(), row)
            return self._add(held)
        key = SubscriptionKey(row.container_id, row.link_name)
        held = self.subscribers[key] = HeldQueue(row.address, Queue(), row, key, is_subscription=True)
        self.subscriptions.add(row.address, held)
        return self._add(held)

    def _new_queue_id(self):
        self.next_queue_id += 1
        return self.next_queue_id - 1

    cdef int _write(self, Message message, bytes body, list targets) except -1:
        cdef HeldQueue held
        cdef object write = self.commits.write
        cdef long long message_id = message.message_id
        cdef object expires_at_ms = None
        if message.deadline_s != INFINITY:
            expires_at_ms = <long long>((message.deadline_s + self.wall_offset_s) * 1000)
        write.messages.append((message_id, message.size_bytes, expires_at_ms, body))
        if body is None:
            write.sealed.append(message_id)
        else:
            self.commits.note(message.size_bytes)
        for held in targets:
            if held.row is None:
                continue
            held.coming_count += 1
            write.entries.append((held.queue_id, message_id, 0))
            if message_id > held.written_mark and held.queue.is_hungry_now():
                # Raised along with the message, so that giving it needs no second sync.
                self._raise_mark(held, message_id + _STRIDE)
        return 0

    cdef int _raise_mark(self, HeldQueue held, long long message_id) except -1:
        """Never lower it: what it covers may have been given already."""
        if message_id > held.written_mark:
            held.written_mark = message_id
            self.commits.write.marks[held.queue_id] = message_id
        return self.commits.promise_kept_by(_Marked(self, held, message_id))

    cdef int _enqueue(self, HeldQueue held, Message message, double now, unsigned int delivery_count=0) except -1:
        self.carry_out(held, held.queue.enqueue(message, now, delivery_count))
        return self._await_deadline(held, message.deadline_s)

    cdef int _await_deadline(self, HeldQueue held, double deadline_s) except -1:
        if deadline_s < held.due_s:
            held.due_s = deadline_s
            self.serial += 1
            heapq.heappush(self.due, (deadline_s, self.serial, held))
        return 0
