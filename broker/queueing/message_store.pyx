"""The messages of a broker, in all queues and subscriptions.

`MessageStore` carries out the actions of queues: deliveries go to the consumers, changes to the open batch of writes.
One message may be in any number of queues; the body is deleted once the last queue has done with the message. A message
that a consumer rejects, that failed too often, or that expires moves to the queue for dead letters or expired messages
that the policy of its durable queue names, or is deleted if the policy names none. So does the oldest message of a
queue over its limit, if its policy is to dead-letter; if its policy is to drop, the message is deleted.
"""

from libc.math cimport INFINITY

from broker.queueing.action cimport Archive, Deliver, Recount, WantMark
from broker.queueing.commit cimport Commits, Promise
from broker.queueing.body_eviction cimport BodyEviction
from broker.queueing.held_queue cimport HeldQueue, LateMessage, QueueProducer, QueueTaker
from broker.queueing.message cimport QueueEntry, QueuedMessage
from broker.queueing.message_records cimport MessageRecords
from broker.queueing.queue cimport LEVELS, Cursor
from broker.queueing.queues cimport BrokerQueues
from broker.queueing.body_cache cimport BodyCache
from recording.records cimport Recorder

import heapq
from collections import deque

from addressing.queue_policy import NO_POLICY, WhenFull
from broker.queueing.action import Departure
from broker.store.cause import Cause, Reason
from broker.queueing.queue import MARK_STRIDE

cdef long long _STRIDE = MARK_STRIDE
cdef object _PURGED = Departure.PURGED

cdef enum:
    # So many waiting entries of a deleted queue are dropped from memory at a time.
    _AT_ONCE = 1000
    # One call of `on_time` expires about this many entries, which takes some ten milliseconds.
    _A_TURN = 10000

cdef double _START_OF_2020 = 1577836800
cdef tuple _SHEDDING = (WhenFull.DROP_OLDEST, WhenFull.DEAD_LETTER)
cdef dict _REASONS = {
    Departure.REJECTED: Reason.REJECTED,
    Departure.GIVEN_UP: Reason.DELIVERY_ATTEMPTS,
    Departure.NO_ROOM: Reason.FULL,
    Departure.EXPIRED: Reason.EXPIRED,
}


cdef class _Marked(Promise):
    """A promise kept once the store has a seen mark: queue ``held`` then gives out messages up to the mark.

    The messages are those of the mark's priority; consumers with credit get them.
    """

    cdef MessageStore message_store
    cdef HeldQueue held
    cdef int priority
    cdef long long message_id

    def __cinit__(self, MessageStore message_store, HeldQueue held, int priority, long long message_id):
        self.message_store, self.held, self.priority, self.message_id = message_store, held, priority, message_id

    cdef int keep(self, double now) except -1:
        return self.message_store.carry_out(self.held, self.held.queue.on_mark(self.priority, self.message_id, now))


cdef class _Forgotten(Promise):
    """A promise kept once the store has deleted the cause of a move to ``held``: the message may move there again."""

    cdef HeldQueue held
    cdef long long message_id

    def __cinit__(self, HeldQueue held, long long message_id):
        self.held, self.message_id = held, message_id

    cdef int keep(self, double now) except -1:
        self.held.moved.discard(self.message_id)
        return 0


cdef class _Moved(Promise):
    """A promise kept once the store has moved a message to queue ``target``: its consumers may then get the message."""

    cdef MessageStore message_store
    cdef HeldQueue target
    cdef QueuedMessage message
    cdef object cause

    def __cinit__(self, MessageStore message_store, HeldQueue target, QueuedMessage message, cause):
        self.message_store, self.target, self.message, self.cause = message_store, target, message, cause

    cdef int keep(self, double now) except -1:
        return self.message_store._arrive(self.target, self.message, self.cause, now)


cdef class MessageStore(BrokerQueues):
    """All queues and subscriptions of a broker, with their messages. ``now`` is the time of the present input.

    Always: ``message.references`` is the number of uses of the message's body: entries, entries to come, deliveries
    and reads under way
    Always: a row of the store is only deleted by a later batch than the batch that wrote the row
    Always: ``to_pump`` has the consumers' links that may have something to write, ``with_room`` the queues that may
    have room again for producers that were held back
    """

    def __init__(
        self, Commits commits not None, BodyCache body_cache not None, Recorder recorder, double wall_offset_s,
        policy_of=None
    ):  # fmt: skip
        BrokerQueues.__init__(self, commits, recorder, policy_of)
        self.body_cache, self.wall_offset_s = body_cache, wall_offset_s
        self.eviction = BodyEviction(body_cache)
        self.records = MessageRecords()
        self.annotated = Annotated(commits)
        self.to_pump, self.with_room = {}, {}
        self.due = []
        self.dropping = deque()
        self.next_message_id = self.first_message_id = self.next_consumer_id = self.least_position = 1

    # Closing

    def close(self):
        """Clear all seen marks in the open batch, after the last delivery of a broker that stops in order.

        The store then has every delivery-count, and the next start need not raise any.
        """
        cdef HeldQueue held
        cdef int priority
        for held in self.every:
            for priority in range(LEVELS):
                if held.row is not None and held.written_marks[priority]:
                    self.commits.write.marks[held.queue_id, priority] = 0

    # Queues and subscriptions

    def delete(self, HeldQueue held not None):
        """Delete a queue or subscription with all of its messages, those that consumers hold included.

        The open batch deletes the queue from the store. Late messages are released. In memory, waiting messages beyond the first thousand are
        dropped by later calls of `on_time`.
        """
        cdef int priority
        cdef LateMessage late
        held.is_deleted = True
        self.forget(held)
        # A queue of the same name may be made, and the position of a deleted message never means a message in it.
        self.least_position = max(self.least_position, held.queue.next_position)
        for late in list(held.late or ()):
            late.give_back()
        self.dropping.append(held)
        self.annotated.drop_queue(held)
        self._drop_some()
        # Messages on their way to the deleted queue are dropped: the store deletes all entries along with the queue's
        # row.
        if held.row is not None:
            for priority in range(LEVELS):
                self.commits.write.marks.pop((held.queue_id, priority), None)
            self.commits.write.dropped_queues.append(held.row.queue_id)

    cdef int _drop_some(self) except -1:
        """Drop up to _AT_ONCE more waiting messages of the deleted queue whose turn it is from memory.

        After a crash the rest of its messages belong to no queue, since the store has deleted the queue's row.
        """
        cdef HeldQueue held = self.dropping[0]
        self.carry_out(held, held.queue.drop_some(_AT_ONCE))
        if held.queue.count_now() == 0:
            self.dropping.popleft()
        return 0

    def begin_positions(self, long long least):
        """Have positions begin at the time since 2020 in tenths of microseconds, or at ``least`` if that is later.

        Call when a broker starts with a store that was used. Operators know messages by their positions. A queue gets
        fewer than ten million messages in a second, also at a start, so no position from before the start is used
        again: a number shown then never means a later message. If the clock was set far back, ``least`` is above them.
        Until 2048 they are below 2^53, as JSON demands.
        """
        self.least_position = max(1, least, <long long>((self.now + self.wall_offset_s - _START_OF_2020) * 1e7))

    def first_position(self):
        return self.least_position

    # Messages

    cdef long long new_message_id(self) noexcept:
        self.next_message_id += 1
        return self.next_message_id - 1

    cdef long long new_passing_id(self) noexcept:
        """Return a new negative id, for a message that is not stored: ids of stored messages stay without gaps then."""
        self.last_passing_id -= 1
        return self.last_passing_id

    cdef long new_consumer_id(self) noexcept:
        self.next_consumer_id += 1
        return self.next_consumer_id - 1

    cdef int write(self, QueuedMessage message, bytes body, list targets) except -1:
        """Count a message as arriving at the queues ``targets``; add the message to the open batch if it is stored.

        ``body`` is kept in memory; None for a large message, whose pieces are in a batch already. The caller has to
        promise `on_written` next.
        """
        cdef HeldQueue held
        message.references = len(targets)
        for held in targets:
            held.arriving_count += 1
            held.arriving_bytes += message.size_bytes
            held.largest_bytes = max(held.largest_bytes, <long long>message.size_bytes)
        if body is not None:
            self.body_cache.pin(message, body)
        if message.is_stored:
            self._write(message, body, targets)
        elif message.is_large:
            self.commits.write.finished.append(message.message_id)
        return 0

    cdef int on_written(self, QueuedMessage message, list targets, double now) except -1:
        """Let a message into its queues ``targets``; call once the batch that was open at its `write` is on disk."""
        cdef HeldQueue held
        if message.is_stored and not message.is_large:
            self.body_cache.unpin(message)
        for held in targets:
            self._arrive(held, message, None, now)
        return 0

    cdef int _arrive(self, HeldQueue target, QueuedMessage message, object cause, double now) except -1:
        """Let a message that was counted as arriving into queue ``target``; drop it if the queue was deleted."""
        target.arriving_count -= 1
        target.arriving_bytes -= message.size_bytes
        if target.is_deleted:
            return self.release(message)
        self._enqueue(target, message, now, 0, cause)
        if target.row is None and self.eviction.is_due():
            self._make_room()
        return self._shed(target) if target.is_limited and target.is_over_limit() else 0

    cdef int _make_room(self) except -1:
        """Have the non-durable subscription with the most bytes lose half of them, until there is room in memory.

        The loop ends, too, when all such subscriptions have few bytes, or only messages that consumers hold.
        A body in two subscriptions leaves the memory when both have dropped the message.
        """
        cdef HeldQueue held
        cdef long long count, size_bytes
        self.eviction.begin()
        while (held := self.eviction.furthest_behind(self.passing)) is not None:
            count, size_bytes = held.queue.limited_count(), held.passing_bytes
            while held.passing_bytes * 2 > size_bytes:
                actions = held.queue.shed()
                if not actions:
                    self.eviction.spare(held)
                    break
                self.carry_out(held, actions)
            self.eviction.note(held, count - held.queue.limited_count(), size_bytes - held.passing_bytes)
        return 0

    cdef int _shed(self, HeldQueue held) except -1:
        """Remove the oldest waiting messages of a queue until it is within its limit.

        Do nothing unless the queue's policy is to drop or to dead-letter messages over the limit.
        """
        cdef list actions
        if held.policy.when_full not in _SHEDDING:
            return 0
        while held.is_over_limit():
            actions = held.queue.shed()
            if not actions:
                return 0
            self.carry_out(held, actions)
        return 0

    def purge(self, HeldQueue held not None, long limit, long long before, double now, Cursor cursor=None):
        """Delete up to ``limit`` waiting messages of a queue, and all unreadable ones, with positions below ``before``.

        Return the number of messages deleted, unreadable messages included. ``cursor`` is as for the queue's
        `take_available`.
        """
        cdef long long purged = held.queue.departed[_PURGED]
        self.carry_out(held, held.queue.take_available(limit, before, _PURGED, now, None, True, cursor))
        self.carry_out(held, held.queue.drop_unreadable(_PURGED, before))
        return held.queue.departed[_PURGED] - purged

    def remove(self, HeldQueue held not None, list positions, double now):
        """Delete the waiting and unreadable messages at ``positions``, which rise; return the positions of the deleted."""
        cdef list actions = held.queue.take_at(positions, _PURGED, now)
        self.carry_out(held, actions)
        return [(<Archive>action).entry.position for action in actions]

    def oldest_us(self, HeldQueue held not None):
        """Return the microseconds since the oldest waiting message of the queue came; None when no message waits."""
        cdef QueueEntry oldest = held.queue.line.oldest()
        return None if oldest is None else self.records.age_us(oldest.message, <unsigned long long>(self.now * 1e6))

    def came_at_s(self, HeldQueue held not None, QueueEntry entry not None):
        """Return the Unix time at which the message of ``entry`` came to queue ``held``, about to the millisecond.

        None if it is unknown, as for a message from before the broker started, and while the link log is off.
        """
        cdef unsigned long long now_us = <unsigned long long>(self.now * 1e6)
        if entry.cause is not None:
            return entry.cause.at_ms / 1000
        if not held.record_level or 0 <= entry.message.message_id < self.first_message_id:
            return None
        return self.now + self.wall_offset_s - self.records.age_us(entry.message, now_us) / 1e6

    def put(self, HeldQueue held not None, bytes body, double ttl_s):
        """Put a message made by the broker, such as an answer to an operator, into a queue in memory for ``ttl_s``."""
        cdef QueuedMessage message = QueuedMessage(self.new_passing_id(), len(body), False, False, self.now + ttl_s)
        message.references = 1
        self.body_cache.pin(message, body)
        self._enqueue(held, message, self.now)

    cdef int discard_large(self, long long message_id) except -1:
        """Have the open batch delete the file of a large body that became no message, as after an aborted delivery."""
        self.commits.write.unlinked.append(message_id)
        return 0

    cdef int release(self, QueuedMessage message) except -1:
        """Count one use of a message's body less; a body without a use is deleted from memory and store."""
        message.references -= 1
        if message.references:
            return 0
        self.body_cache.forget(message)
        if message.is_stored:
            self.commits.write.dropped_messages.append(message.message_id)
        if message.is_large:
            self.commits.write.unlinked.append(message.message_id)
        return 0

    cdef int carry_out(self, HeldQueue held, list actions) except -1:
        cdef QueueEntry entry
        for action in actions:
            if type(action) is Deliver:
                entry = (<Deliver>action).entry
                entry.message.references += 1
                (<QueueTaker>held.consumers[(<Deliver>action).consumer_id]).take(entry)
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

    cdef int _leave(self, HeldQueue held, QueueEntry entry, object departure) except -1:
        """Delete an archived entry of queue ``held``, or move the message to the queue that its policy names."""
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
        if held.held_back or held.late:
            self.with_room[held] = None
        if held.is_limited and held.queue.count_now() == 0:
            held.largest_bytes = 0
        return self.release(entry.message)

    cdef object cause_of(self, HeldQueue held, QueueEntry entry, object reason):
        at_ms = <long long>((self.now + self.wall_offset_s) * 1000)
        return Cause(reason, held.address, entry.delivery_count, at_ms)

    cdef int move(self, HeldQueue held, QueueEntry entry, HeldQueue target, object cause) except -1:
        """Move the message of an archived entry to the durable queue ``target`` in one commit: no crash loses it.

        In memory the message enters ``target`` once the commit is on disk: else a consumer could get a message that
        counts as unseen after a crash.
        """
        self._forget(held, entry)
        self.annotated.leave(held, entry.message, None if entry.message.message_id in target.moved else target)
        if held.held_back or held.late:
            self.with_room[held] = None
        return self._go_to(target, entry.message, cause)

    def _way_out(self, HeldQueue held not None, departure):
        """Return the queue to which the policy of ``held`` moves messages of this departure; None if they are deleted.

        The queue is made if there is none.
        """
        policy = held.policy
        if departure is Departure.EXPIRED:
            address = policy.expiry
        elif departure is Departure.NO_ROOM and policy.when_full is not WhenFull.DEAD_LETTER:
            address = ""
        else:
            address = policy.dead_letter if departure in _REASONS else ""
        return self.queue(address) if address else None

    cdef int _forget(self, HeldQueue held, QueueEntry entry) except -1:
        cdef object write = self.commits.write
        cdef long long message_id = entry.message.message_id
        write.archived.setdefault(held.queue_id, []).append(message_id)
        if entry.cause is not None:
            # The message id stays in ``moved`` until the store has deleted the cause of the move: the same message may
            # not return to the queue in the batch that deletes the cause.
            self.commits.promise_kept_by(_Forgotten(held, message_id))
            write.forgotten_causes.setdefault(held.queue_id, []).append(message_id)
        return 0

    cdef int _go_to(self, HeldQueue target, QueuedMessage message, object cause) except -1:
        cdef object write = self.commits.write
        cdef long long message_id = message.message_id
        if message_id in target.moved:
            # The target got the same message from another subscription before: a message enters a queue only once.
            return self.release(message)
        target.moved.add(message_id)
        target.arriving_count += 1
        target.arriving_bytes += message.size_bytes
        write.entries.append((target.queue_id, message_id, 0))
        write.causes.append((target.queue_id, message_id, cause))
        return self.commits.promise_kept_by(_Moved(self, target, message, cause))

    def pump(self, double now):
        cdef QueueTaker taker
        while self.to_pump:
            taker = next(iter(self.to_pump))
            del self.to_pump[taker]
            taker.pump(now)
        while self.with_room:
            self._let_in(self.with_room.popitem()[0])

    def _let_in(self, HeldQueue held):
        """Let late messages into queue ``held``, which may have room again, then the producers that it holds back.

        The producers ask for credit again once no late message waits.
        """
        cdef QueueProducer producer
        while held.late and held.room() > 0:
            if not (<LateMessage>next(iter(held.late))).enter():
                return
        if held.late:
            return
        waiting, held.held_back = held.held_back, {}
        for producer in waiting:
            producer.on_room_in_queue()

    # Time

    def next_deadline(self):
        return self.now if self.dropping or self.subscriptions.has_ended else self._next_due()

    def _next_due(self):
        while self.due and (self.due[0][2].is_deleted or (<HeldQueue>self.due[0][2]).due_s != self.due[0][0]):
            heapq.heappop(self.due)
        return self.due[0][0] if self.due else None

    def on_time(self, double now):
        """Drop more messages of deleted queues and filters of ended sets, and expire messages, limited numbers per call.

        A temporary queue that is unused and empty then is deleted. `next_deadline` is not in the future while more
        messages are due.
        """
        cdef HeldQueue held
        cdef Py_ssize_t count = 0
        cdef list actions
        if self.dropping:
            self._drop_some()
        self.subscriptions.drop_some()
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

    cdef int _write(self, QueuedMessage message, bytes body, list targets) except -1:
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
                # A consumer has credit: the seen mark is raised in the same commit as the message, so that its delivery
                # needs no second sync.
                self._raise_mark(held, message.priority, message_id + _STRIDE)
        return 0

    cdef int _raise_mark(self, HeldQueue held, int priority, long long message_id) except -1:
        """Put a seen mark into the open batch, unless one as high was written, and promise to call ``Queue.on_mark``.

        The mark is never lowered: messages below may have been given already.
        """
        if message_id > held.written_marks[priority]:
            held.written_marks[priority] = message_id
            self.commits.write.marks[held.queue_id, priority] = message_id
        return self.commits.promise_kept_by(_Marked(self, held, priority, message_id))

    cdef int _enqueue(self, HeldQueue held, QueuedMessage message, double now, unsigned int delivery_count=0,
                      object cause=None) except -1:
        if held.record_level:
            self.records.enqueued(held, message, now)
        return self.let_in(held, message, now, delivery_count, cause)

    cdef int let_in(self, HeldQueue held, QueuedMessage message, double now, unsigned int delivery_count, object cause) except -1:
        """Add a message to queue ``held``: a new message, or a message that the store had when the broker started."""
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
