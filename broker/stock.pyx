"""The messages of a broker, in all its queues and subscriptions.

Carries out what the queues ask: deliveries go to the consumers, changes to the open batch. One message lies in any
number of queues; its body goes when the last of them has done with it.
"""

from libc.math cimport INFINITY

from broker.action cimport Archive, Deliver, Recount, WantMark
from broker.commit cimport Commits, Promise
from broker.crowding cimport Crowding
from broker.held_queue cimport HeldQueue, Producer, Taker
from broker.message cimport Entry, Message
from broker.message_records cimport MessageRecords
from broker.queue cimport LEVELS
from broker.queues cimport Queues
from broker.shelf cimport Shelf

import heapq
from collections import deque

from addressing.queue_policy import NO_POLICY, WhenFull
from broker.action import Departure
from broker.cause import Cause, Reason
from broker.queue import MARK_STRIDE

cdef long long _STRIDE = MARK_STRIDE
cdef object _PURGED = Departure.PURGED

cdef enum:
    # Archived, before what that asks for is carried out.
    _AT_ONCE = 1000
    # Expired, before anything else is looked at: some ten milliseconds.
    _A_TURN = 10000

cdef tuple _SHEDDING = (WhenFull.DROP_OLDEST, WhenFull.DEAD_LETTER)
cdef dict _REASONS = {
    Departure.REJECTED: Reason.REJECTED,
    Departure.GIVEN_UP: Reason.DELIVERY_ATTEMPTS,
    Departure.NO_ROOM: Reason.FULL,
    Departure.EXPIRED: Reason.EXPIRED,
}


cdef class _Marked(Promise):
    """The store holds this seen mark."""

    cdef Stock stock
    cdef HeldQueue held
    cdef int priority
    cdef long long message_id

    def __cinit__(self, Stock stock, HeldQueue held, int priority, long long message_id):
        self.stock, self.held, self.priority, self.message_id = stock, held, priority, message_id

    cdef int keep(self, double now) except -1:
        return self.stock.carry_out(self.held, self.held.queue.on_mark(self.priority, self.message_id, now))


cdef class _Forgotten(Promise):
    """The store does not know any more that this queue had a message that was taken from another."""

    cdef HeldQueue held
    cdef long long message_id

    def __cinit__(self, HeldQueue held, long long message_id):
        self.held, self.message_id = held, message_id

    cdef int keep(self, double now) except -1:
        self.held.moved.discard(self.message_id)
        return 0


cdef class _Moved(Promise):
    """The store has taken the message out of one queue, and into this one."""

    cdef Stock stock
    cdef HeldQueue target
    cdef Message message
    cdef object cause

    def __cinit__(self, Stock stock, HeldQueue target, Message message, cause):
        self.stock, self.target, self.message, self.cause = stock, target, message, cause

    cdef int keep(self, double now) except -1:
        return self.stock._arrive(self.target, self.message, self.cause, now)


cdef class Stock(Queues):
    """Owns the messages, too. ``now`` is the time of the input that is being worked on.

    Always: ``message.references`` is the number of entries and copies under way of it
    Always: a row is only deleted after the batch that wrote it
    Always: ``to_pump`` has the consumers that may have something to write, ``with_room`` the queues that may have
    room for producers that were held back
    """

    def __init__(self, Commits commits not None, Shelf shelf not None, double wall_offset_s, policy_of=None):
        Queues.__init__(self, commits, policy_of)
        self.shelf, self.wall_offset_s = shelf, wall_offset_s
        self.crowding = Crowding(shelf)
        self.records = MessageRecords()
        self.annotated = Annotated(commits)
        self.to_pump, self.with_room = {}, {}
        self.due = []
        self.dropping = deque()
        self.next_message_id = self.next_consumer_id = 1

    # Closing

    def close(self):
        """After the last delivery: nothing will have been seen unknown to the store. Written with the open batch."""
        cdef HeldQueue held
        cdef int priority
        for held in self.every:
            for priority in range(LEVELS):
                if held.row is not None and held.written_marks[priority]:
                    self.commits.write.marks[held.queue_id, priority] = 0

    # Queues and subscriptions

    def delete(self, HeldQueue held not None):
        """With all its messages, held by consumers or not. Of millions the last are forgotten later."""
        cdef int priority
        held.is_deleted = True
        self.forget(held)
        self.dropping.append(held)
        self.annotated.drop_queue(held)
        self._drop_some()
        # What is under way to it is neither given nor kept: the row takes its entries along.
        if held.row is not None:
            for priority in range(LEVELS):
                self.commits.write.marks.pop((held.queue_id, priority), None)
            self.commits.write.dropped_queues.append(held.row.queue_id)

    cdef int _drop_some(self) except -1:
        """Of what was deleted. The store has forgotten the queue: what a crash leaves, no start finds in any."""
        cdef HeldQueue held = self.dropping[0]
        self.carry_out(held, held.queue.drop_some(_AT_ONCE))
        if held.queue.count_now() == 0:
            self.dropping.popleft()
        return 0

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
        cdef HeldQueue held
        message.references = len(targets)
        for held in targets:
            held.arriving_count += 1
            held.arriving_bytes += message.size_bytes
            held.largest_bytes = max(held.largest_bytes, <long long>message.size_bytes)
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
            self._arrive(held, message, None, now)
        return 0

    cdef int _arrive(self, HeldQueue target, Message message, object cause, double now) except -1:
        """A message that was on its way here, in the open batch and then in one that was committed."""
        target.arriving_count -= 1
        target.arriving_bytes -= message.size_bytes
        if target.is_deleted:
            return self.release(message)
        self._enqueue(target, message, now, 0, cause)
        if target.row is None and self.crowding.is_due():
            self._make_room()
        return self._shed(target) if target.is_limited and target.is_over_limit() else 0

    cdef int _make_room(self) except -1:
        """In memory. Half of what one has: a body that two of them have goes when both have given way."""
        cdef HeldQueue held
        cdef long long count, size_bytes
        self.crowding.begin()
        while (held := self.crowding.furthest_behind(self.passing)) is not None:
            count, size_bytes = held.queue.limited_count(), held.passing_bytes
            while held.passing_bytes * 2 > size_bytes:
                actions = held.queue.shed()
                if not actions:
                    self.crowding.spare(held)
                    break
                self.carry_out(held, actions)
            self.crowding.note(held, count - held.queue.limited_count(), size_bytes - held.passing_bytes)
        return 0

    cdef int _shed(self, HeldQueue held) except -1:
        """Make room at the expense of the oldest, where that is what a full queue does."""
        cdef list actions
        if held.policy.when_full not in _SHEDDING:
            return 0
        while held.is_over_limit():
            actions = held.queue.shed()
            if not actions:
                return 0
            self.carry_out(held, actions)
        return 0

    def purge(self, HeldQueue held not None, long limit, long long before, double now):
        """Drop up to ``limit`` that wait in it and came before position ``before``; how many."""
        cdef long long purged = held.queue.departed[_PURGED]
        self.carry_out(held, held.queue.take_available(limit, before, _PURGED, now))
        self.carry_out(held, held.queue.drop_unreadable(_PURGED))
        return held.queue.departed[_PURGED] - purged

    def oldest_us(self, HeldQueue held not None):
        """How long the oldest message that waits in it has been there, in us; None when none does."""
        cdef Entry oldest = held.queue.line.oldest()
        return None if oldest is None else self.records.age_us(oldest.message, <unsigned long long>(self.now * 1e6))

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
                self._leave(held, (<Archive>action).entry, (<Archive>action).departure)
            elif type(action) is Recount:
                entry = (<Recount>action).entry
                if held.row is not None and entry.message.is_stored:
                    self.commits.write.counts[held.queue_id, entry.message.message_id] = entry.delivery_count
            else:
                self._raise_mark(held, (<WantMark?>action).priority, (<WantMark>action).message_id)
        return 0

    # Leaving a queue

    cdef int _leave(self, HeldQueue held, Entry entry, object departure) except -1:
        """For good, or for where the queue's policy says."""
        cdef bint is_kept = held.row is not None and entry.message.is_stored and not held.is_deleted
        if is_kept and held.policy is not NO_POLICY:
            target = self._way_out(held, departure)
            if target is not None:
                if held.record_level:
                    self.records.left(held, entry.message, departure, True, self.now)
                return self.move(held, entry, target, self.cause_of(held, entry, _REASONS[departure]))
        if is_kept:
            self._forget(held, entry)
        self.annotated.leave(held, entry.message, None)
        if held.record_level:
            self.records.left(held, entry.message, departure, False, self.now)
        held.count_out(entry.message)
        if held.held_back:
            self.with_room[held] = None
        if held.is_limited and held.queue.count_now() == 0:
            held.largest_bytes = 0
        return self.release(entry.message)

    cdef object cause_of(self, HeldQueue held, Entry entry, object reason):
        at_ms = <long long>((self.now + self.wall_offset_s) * 1000)
        return Cause(reason, held.address, entry.delivery_count, at_ms)

    cdef int move(self, HeldQueue held, Entry entry, HeldQueue target, object cause) except -1:
        """What was archived here goes to another durable queue, in one commit: a crash leaves it in one of the two.

        In memory it enters the other when that is on disk, so that nobody is given what a crash would show as never seen.
        """
        self._forget(held, entry)
        self.annotated.leave(held, entry.message, None if entry.message.message_id in target.moved else target)
        if held.held_back:
            self.with_room[held] = None
        return self._go_to(target, entry.message, cause)

    def _way_out(self, HeldQueue held not None, departure):
        """The queue for what departs so; None where it is done with."""
        policy = held.policy
        if departure is Departure.EXPIRED:
            address = policy.expiry
        elif departure is Departure.NO_ROOM and policy.when_full is not WhenFull.DEAD_LETTER:
            address = ""
        else:
            address = policy.dead_letter if departure in _REASONS else ""
        return self.queue(address) if address else None

    cdef int _forget(self, HeldQueue held, Entry entry) except -1:
        cdef object write = self.commits.write
        cdef long long message_id = entry.message.message_id
        write.archived.setdefault(held.queue_id, []).append(message_id)
        if entry.cause is not None:
            # Not yet out of ``moved``: the same message may not come back in the batch that takes it out.
            self.commits.promise_kept_by(_Forgotten(held, message_id))
            write.forgotten_causes.setdefault(held.queue_id, []).append(message_id)
        return 0

    cdef int _go_to(self, HeldQueue target, Message message, object cause) except -1:
        cdef object write = self.commits.write
        cdef long long message_id = message.message_id
        if message_id in target.moved:
            # From two subscriptions: a queue has a message once.
            return self.release(message)
        target.moved.add(message_id)
        target.arriving_count += 1
        target.arriving_bytes += message.size_bytes
        write.entries.append((target.queue_id, message_id, 0))
        write.causes.append((target.queue_id, message_id, cause))
        return self.commits.promise_kept_by(_Moved(self, target, message, cause))

    def pump(self, double now):
        cdef Taker taker
        while self.to_pump:
            taker = next(iter(self.to_pump))
            del self.to_pump[taker]
            taker.pump(now)
        while self.with_room:
            self._let_in(self.with_room.popitem()[0])

    def _let_in(self, HeldQueue held):
        """Producers that the queue held back: each may find that there is room for it."""
        cdef Producer producer
        waiting, held.held_back = held.held_back, {}
        for producer in waiting:
            producer.on_room_in_queue()

    # Time

    def next_deadline(self):
        return self.now if self.dropping else self._next_due()

    def _next_due(self):
        while self.due and (self.due[0][2].is_deleted or (<HeldQueue>self.due[0][2]).due_s != self.due[0][0]):
            heapq.heappop(self.due)
        return self.due[0][0] if self.due else None

    def on_time(self, double now):
        """What is due, and of millions of messages so many that others have their turn: the next deadline may be over."""
        cdef HeldQueue held
        cdef Py_ssize_t count = 0
        cdef list actions
        if self.dropping:
            self._drop_some()
        while (deadline := self._next_due()) is not None and deadline <= now and count < _A_TURN:
            held = heapq.heappop(self.due)[2]
            held.due_s = INFINITY
            actions = held.queue.on_time(now)
            count += len(actions)
            self.carry_out(held, actions)
            self._await_deadline(held, held.queue.deadline_now())
            if held.is_forsaken:
                self.delete(held)

    def summaries(self):
        return tuple([(<HeldQueue>held).summary(self.now) for held in self.every])

    # Within

    cdef int _write(self, Message message, bytes body, list targets) except -1:
        cdef HeldQueue held
        cdef object write = self.commits.write
        cdef long long message_id = message.message_id
        cdef object expires_at_ms = None
        if message.deadline_s != INFINITY:
            expires_at_ms = <long long>((message.deadline_s + self.wall_offset_s) * 1000)
        write.messages.append((message_id, message.size_bytes, message.priority, expires_at_ms, body))
        if body is None:
            write.sealed.append(message_id)
        else:
            self.commits.note(message.size_bytes)
        for held in targets:
            if held.row is None:
                continue
            write.entries.append((held.queue_id, message_id, 0))
            if message_id > held.written_marks[message.priority] and held.queue.is_hungry_now():
                # Raised along with the message, so that giving it needs no second sync.
                self._raise_mark(held, message.priority, message_id + _STRIDE)
        return 0

    cdef int _raise_mark(self, HeldQueue held, int priority, long long message_id) except -1:
        """Never lower it: what it covers may have been given already."""
        if message_id > held.written_marks[priority]:
            held.written_marks[priority] = message_id
            self.commits.write.marks[held.queue_id, priority] = message_id
        return self.commits.promise_kept_by(_Marked(self, held, priority, message_id))

    cdef int _enqueue(self, HeldQueue held, Message message, double now, unsigned int delivery_count=0,
                       object cause=None) except -1:
        if held.record_level:
            self.records.enqueued(held, message, now)
        return self.let_in(held, message, now, delivery_count, cause)

    cdef int let_in(self, HeldQueue held, Message message, double now, unsigned int delivery_count, object cause) except -1:
        """It is in the queue now, or was before the broker started."""
        held.count_in(message)
        self.carry_out(held, held.queue.enqueue(message, now, delivery_count, cause))
        if held.queue.has_passed_over:
            held.queue.has_passed_over = False
            self.to_pump.update(dict.fromkeys(held.consumers.values()))
        return 0 if cause is not None else self._await_deadline(held, message.deadline_s)

    cdef int _await_deadline(self, HeldQueue held, double deadline_s) except -1:
        if deadline_s < held.due_s:
            held.due_s = deadline_s
            self.serial += 1
            heapq.heappush(self.due, (deadline_s, self.serial, held))
        return 0
