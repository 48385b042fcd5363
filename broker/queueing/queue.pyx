"""A queue's choice of consumer for each message, and the states of a message until the queue has done with it.

The queue does no I/O: a caller gives it inputs, and carries out the returned actions, in order.
Spec:  AMQP 1.0 [3.3] distribution nodes and message states, [3.4] outcomes.
Units: credit is a number of deliveries; times are monotonic seconds.

        enqueue          give                    ACCEPTED, REJECTED
    ---------------> AVAILABLE ------> ACQUIRED ---------------------> ARCHIVED
                      ^  |   RELEASED, FAILED |                          ^
                      |  +--------------------+--- past its deadline ----+
                      +-----------------------+

An entry that FAILED as often as the queue allows is ARCHIVED, too.

The **seen mark**: after kill -9 no record of deliveries is left, yet a message delivered again must show a
delivery-count of 1 or more. So a stored message is only given once the store holds a mark at or above the message id,
and when a store that was not closed is opened, the count of every message up to the mark is raised. The mark moves in
strides: one small write per MARK_STRIDE. Each priority has a separate mark: an urgent message may have been seen though
the thousands before were not.
"""

from libc.math cimport INFINITY

from broker.queueing.action cimport Archive, Deliver, Recount, WantMark
from broker.queueing.browser cimport Browser
from broker.queueing.deadlines cimport Deadlines
from broker.queueing.delivery_order cimport DeliveryOrder
from broker.queueing.message cimport ACQUIRED, ARCHIVED, AVAILABLE, UNREADABLE, QueueEntry, QueuedMessage
from broker.queueing.packed cimport PACK_ENTRIES, Pack

import heapq
from dataclasses import dataclass

from broker.queueing.action import Departure, SettlementVerdict
from wire.errors import LocalStateError

# A position above those of all entries.
cdef long long FURTHEST = 0x7FFFFFFFFFFFFFFF

MARK_STRIDE = 1000
cdef long long _STRIDE = MARK_STRIDE

FRONT_ENTRIES = 4096
"""New entries of a priority are packed only once this many wait unpacked before them: more than a consumer is given at
a time, and more than wait in a queue whose consumers keep up."""

cdef enum:
    # A pack is searched for expired messages at most once in this many seconds. Messages that expire meanwhile stay in
    # the queue until the next search, and no consumer gets them.
    PATIENCE_S = 1
    AT_ONCE = 1000
    # At most this many entries are searched for a message that a consumer with a size limit can take, since millions
    # may wait.
    LOOK_ENTRIES = 1000

# The members of Python enums are module variables here, since to reach one through its class costs as much as a call.
cdef object _ACCEPTED = SettlementVerdict.ACCEPTED, _REJECTED = SettlementVerdict.REJECTED, _RELEASED = SettlementVerdict.RELEASED
cdef object _FAILED = SettlementVerdict.FAILED
cdef object _WAS_ACCEPTED = Departure.ACCEPTED, _WAS_REJECTED = Departure.REJECTED
cdef object _EXPIRED = Departure.EXPIRED, _DROPPED = Departure.DROPPED
cdef object _GIVEN_UP = Departure.GIVEN_UP, _NO_ROOM = Departure.NO_ROOM


cdef class QueueConsumer:
    """A consumer of one queue, as the queue sees the consumer.

    ``credit`` is how many more entries the queue may give to the consumer; ``acquired`` are the entries that it holds,
    given and without an outcome, in the order in which they were given.
    """

    def __cinit__(self, long consumer_id):
        self.consumer_id = consumer_id
        self.acquired = {}

    cdef bint is_too_small_for(self, QueueEntry entry) noexcept:
        return self.most_bytes and entry.message.size_bytes > self.most_bytes


cdef class Cursor:
    """The place in a queue's delivery order up to which an operation of several steps has looked.

    ``looks`` is the number of entries that its present step may still look at; it ``is_done`` once none is left.
    """

    def __cinit__(self):
        self.priority, self.after = LEVELS - 1, -1

    def begin_step(self, long looks):
        self.looks = looks

    cdef bint has_passed(self, QueueEntry entry) noexcept:
        return entry.message.priority == self.priority and entry.position <= self.after

    cdef int pass_by(self, QueueEntry entry) except -1:
        self.priority, self.after = entry.message.priority, entry.position
        self.looks -= 1
        return 0


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    available_count: int
    acquired_count: int
    unreadable_count: int
    size_bytes: int
    consumer_count: int
    browser_count: int
    enqueued_total: int
    next_position: int
    departed_total: dict[str, int]


cdef class Queue:
    """One queue or subscription, which gives each message to one of its competing consumers.

    The queue gives a message up once its delivery-count reaches ``max_delivery_attempts``; 0: never.

    Always: every ACQUIRED entry is in exactly one consumer's ``acquired``
    Always: ``ready`` holds exactly the consumers with credit, least recently served first
    """

    def __init__(self, *, bint is_durable=True, unsigned int max_delivery_attempts=0, front_entries=FRONT_ENTRIES,
                 pack_entries=PACK_ENTRIES, long long first_position=0):
        self.first_position = self.next_position = first_position
        self.is_durable, self.max_delivery_attempts = is_durable, max_delivery_attempts
        self.line = DeliveryOrder(front_entries, pack_entries)
        self.unreadable = set()
        self.consumers, self.ready, self.browsers = {}, {}, {}
        self.deadlines = Deadlines()
        self.departed = dict.fromkeys(Departure, 0)

    # Messages

    cpdef list enqueue(self, QueuedMessage message, double now, unsigned int delivery_count=0, object cause=None):
        cdef list actions = []
        cdef QueueEntry entry = QueueEntry(message, self.next_position, delivery_count, cause)
        self.next_position += 1
        self.line.append(entry)
        self.available_count += 1
        self.size_bytes += message.size_bytes
        if cause is None:
            self.deadlines.add(message.deadline_s, entry)
        if not self.browsers:
            self._pack(message.priority)
        else:
            # Browsers refer to the entries themselves, so new entries are not packed while a browser is attached.
            for browser in self.browsers.values():
                (<Browser>browser).expect(entry, self.count_now())
        self._dispatch(now, actions)
        return actions

    cdef int restore(self, long long message_id, size_t size_bytes, int priority, double deadline_s,
                     unsigned int delivery_count) except -1:
        """Add a message from the store at the back of the queue, in a pack, when the broker starts.

        The message is small, is in no other queue, and was not moved to this one. Call `end_restoring` after the last
        message.
        """
        self.line.restore(priority, message_id, self.next_position, size_bytes, deadline_s, delivery_count)
        self.next_position += 1
        self.available_count += 1
        self.size_bytes += size_bytes
        return 0

    cdef int end_restoring(self) except -1:
        self.line.end_restoring()
        return self._await_packs()

    cpdef list settle(self, long consumer_id, QueueEntry entry, object verdict, double now, bint shun=False):
        """Apply a consumer's verdict on an entry that it holds; return the actions to carry out.

        ``shun``: never give the entry to this consumer again [3.4.5]. Raises LocalStateError if the consumer does not
        hold the entry.
        """
        cdef list actions = []
        cdef QueueConsumer consumer = self.consumers[consumer_id]
        if entry not in consumer.acquired:
            raise LocalStateError(f"consumer {consumer_id} does not hold the message at {entry.position}")
        del consumer.acquired[entry]
        if shun:
            entry.shunned_by = (entry.shunned_by or frozenset()) | {consumer_id}
        self._conclude(entry, verdict, now, actions)
        self._dispatch(now, actions)
        return actions

    cpdef list on_mark(self, int priority, long long message_id, double now):
        """Note that the store holds ``message_id`` as the seen mark of this priority; return the actions to carry out.

        Consumers with credit are now given the waiting messages of this priority with ids up to the mark.
        """
        cdef list actions = []
        if message_id > self.marks[priority]:
            self.marks[priority] = message_id
            self._dispatch(now, actions)
        return actions

    cpdef list drop_some(self, long count):
        """Archive up to ``count`` waiting entries, and all unreadable or held ones, of a queue that is being deleted.

        Return the actions to carry out; the list is empty once no entry is left.
        """
        cdef list actions = self.drop_unreadable(_DROPPED)
        cdef QueueConsumer consumer
        cdef QueueEntry entry
        for consumer in self.consumers.values():
            for entry in consumer.acquired:
                self.acquired_count -= 1
                self.available_count += 1
                actions.append(self._archive(entry, _DROPPED))
            consumer.acquired.clear()
        for _ in range(count):
            entry = self._pop()
            if entry is None:
                break
            actions.append(self._archive(entry, _DROPPED))
        return actions

    cpdef list drop_unreadable(self, object departure, long long before=FURTHEST):
        """Archive the unreadable entries whose positions are below ``before``; return the actions to carry out."""
        cdef list actions = []
        cdef QueueEntry entry
        for entry in list(self.unreadable):
            if entry.position < before:
                actions.append(self._archive_unreadable(entry, departure))
        return actions

    cdef Archive _archive_unreadable(self, QueueEntry entry, object departure):
        self.unreadable.discard(entry)
        self.unreadable_bytes -= entry.message.size_bytes
        self.available_count += 1
        return self._archive(entry, departure)

    cpdef list shed(self):
        """Archive the oldest waiting entry, for want of room; return the action to carry out in a list.

        The list is empty when no entry waits, as when consumers hold all entries.
        """
        cdef QueueEntry oldest = self.line.pop_oldest()
        self._await_spent()
        return [] if oldest is None else [self._archive(oldest, _NO_ROOM)]

    cpdef list set_aside(self, long consumer_id, QueueEntry entry, double now):
        """Keep an entry that a consumer holds in the queue as unreadable, since the body in the store is damaged.

        The queue gives the entry to no consumer any more; return the actions to carry out. Nothing is done for a
        browser, which holds no entry.
        """
        cdef list actions = []
        cdef QueueConsumer consumer = self.consumers.get(consumer_id)
        if consumer is None or entry not in consumer.acquired:
            return actions
        del consumer.acquired[entry]
        self.acquired_count -= 1
        entry.standing = UNREADABLE
        self.unreadable_bytes += entry.message.size_bytes
        self.unreadable.add(entry)
        self._dispatch(now, actions)
        return actions

    cpdef list take_available(self, long limit, long long before, object departure, double now, object wants=None,
                              bint are_packed=True, Cursor cursor=None):
        """Archive up to ``limit`` waiting entries whose positions are below ``before``, in delivery order.

        Return the actions to carry out. ``wants``, if given, is called with each QueueEntry, and an entry for which it
        returns False stays in place. Without ``are_packed`` packed messages stay, and ``wants`` is not called for them.
        Entries past their deadlines stay, too. A ``cursor`` has the place where the last call for it ended, and limits
        the entries that this call looks at.
        """
        cdef list actions = []
        cdef bint is_cut = False
        cdef long long last_position
        if limit <= 0:
            return actions
        if cursor is None:
            cursor = Cursor()
            cursor.looks = FURTHEST
        for each in self.line.in_order(cursor.priority, cursor.after, before):
            if limit <= 0 or cursor.looks <= 0:
                is_cut = True
                break
            if type(each) is not Pack:
                cursor.pass_by(each)
                limit -= self._take_if(each, before, departure, now, wants, actions)
            elif are_packed:
                last_position = (<Pack>each).last_position
                limit = self._take_from(each, limit, before, departure, now, wants, actions, cursor)
                is_cut = cursor.after < last_position and (limit <= 0 or cursor.looks <= 0)
        cursor.is_done = not is_cut
        self._drop_front()
        self._sweep()
        return actions

    cdef long _take_from(self, Pack pack, long limit, long long before, object departure, double now, object wants,
                         list actions, Cursor cursor) except? -1:
        """Archive entries of a pack as `take_available` does; return what is left of ``limit``."""
        cdef long taken = 0
        cdef QueueEntry entry
        for entry in pack.open():
            if taken >= limit or cursor.looks <= 0:
                break
            if not cursor.has_passed(entry):
                cursor.pass_by(entry)
                taken += self._take_if(entry, before, departure, now, wants, actions)
        pack.drop_archived()
        return limit - taken

    cpdef list take_at(self, list positions, object departure, double now, object wants=None):
        """Archive the waiting and unreadable entries at ``positions``, which rise; return the actions to carry out.

        ``wants`` is as for `take_available`, but is not called for unreadable entries, which stay if it is given.
        Entries past their deadlines stay.
        """
        cdef list actions = [], opened = []
        cdef QueueEntry entry
        cdef Pack pack
        for entry in self.line.at(positions, opened):
            self._take_if(entry, FURTHEST, departure, now, wants, actions)
        for pack in opened:
            pack.drop_archived()
        if self.unreadable and wants is None:
            for entry in [entry for entry in self.unreadable if (<QueueEntry>entry).position in positions]:
                actions.append(self._archive_unreadable(entry, departure))
        self._sweep()
        return actions

    def held_at(self, list positions):
        """Return those of ``positions`` whose entries are with a consumer."""
        cdef set wanted = set(positions)
        cdef QueueConsumer consumer
        cdef QueueEntry entry
        found = []
        if self.acquired_count:
            for consumer in self.consumers.values():
                for entry in consumer.acquired:
                    if entry.position in wanted:
                        found.append(entry.position)
        return found

    cdef bint _take_if(self, QueueEntry entry, long long before, object departure, double now, object wants,
                       list actions) except -1:
        if entry.standing != AVAILABLE or entry.position >= before or entry.is_past(now):
            return False
        if wants is not None and not wants(entry):
            return False
        self._archive_there(entry, departure, actions)
        return True

    def first(self, long count):
        """Return the first ``count`` waiting or held entries, no unreadable ones, in delivery order; change nothing."""
        cdef list found = self.line.first(count)
        cdef QueueConsumer consumer
        for consumer in self.consumers.values():
            found += consumer.acquired
        return heapq.nsmallest(count, found, key=_place_of)

    cdef list beyond(self, long long position, Py_ssize_t count, list opened):
        """Return the ``count`` first waiting or held entries with positions above ``position``, in order of positions.

        Fewer are returned only if no more follow. Nothing changes but that packs are opened, which are appended to
        ``opened``: the caller closes them.
        """
        cdef list found = self.line.beyond(position, count, opened)
        cdef QueueConsumer consumer
        cdef QueueEntry entry
        if self.acquired_count:
            for consumer in self.consumers.values():
                for entry in consumer.acquired:
                    if entry.position > position:
                        found.append(entry)
            found = heapq.nsmallest(count, found, key=_position_of)
        return found

    # Consumers

    def attach(self, long consumer_id, size_t most_bytes=0):
        """Attach a consumer, which gets no messages larger than ``most_bytes``; 0: no limit. [2.7.3]"""
        cdef QueueConsumer consumer
        self._refuse_twice(consumer_id)
        consumer = self.consumers[consumer_id] = QueueConsumer(consumer_id)
        consumer.most_bytes = most_bytes
        self.choosy_count += most_bytes > 0

    def attach_browser(self, long consumer_id, size_t most_bytes=0):
        """Attach a browser, which sees waiting and new messages of up to ``most_bytes`` (0: any), and takes none."""
        cdef Browser browser
        self._refuse_twice(consumer_id)
        browser = self.browsers[consumer_id] = Browser(consumer_id, self.line.in_order())
        browser.most_bytes = most_bytes

    cpdef list detach(self, long consumer_id, object unwritten, double now, bint is_orderly=False):
        """Detach a consumer or browser; return the actions to carry out.

        The queue takes back all entries that the consumer holds, and raises the delivery-counts of those not in
        ``unwritten``: a consumer whose connection was lost may have seen every delivery written to the link. After an
        orderly detach no count is raised: a consumer that leaves without an outcome did not try. [3.4.4]
        """
        cdef list actions = []
        cdef QueueConsumer consumer
        cdef set untouched
        browser = self.browsers.pop(consumer_id, None)
        if browser is not None:
            (<Browser>browser).leave()
            return actions
        consumer = self.consumers.pop(consumer_id)
        self.choosy_count -= consumer.most_bytes > 0
        self.ready.pop(consumer_id, None)
        untouched = set(unwritten)
        for entry in consumer.acquired:
            self._conclude(entry, _RELEASED if is_orderly or entry in untouched else _FAILED, now, actions)
        self._dispatch(now, actions)
        return actions

    cpdef list set_credit(self, long consumer_id, long credit, double now):
        """Set how many entries a consumer or browser may be given from now on; return the actions to carry out.

        With credit, waiting messages are given at once.
        """
        cdef list actions = []
        cdef Browser browser = self.browsers.get(consumer_id) if self.browsers else None
        cdef QueueConsumer consumer
        if browser is not None:
            browser.close_passed()
            browser.credit = credit
            self._browse(browser, now, actions)
            return actions
        consumer = self.consumers[consumer_id]
        consumer.credit = credit
        if credit > 0:
            self.ready.setdefault(consumer_id, consumer)
        else:
            self.ready.pop(consumer_id, None)
        self._dispatch(now, actions)
        return actions

    cpdef bint is_dry_for(self, long consumer_id, double now) except -1:
        """Whether no waiting message could be given to this consumer or browser: its drain may be answered. [2.6.7]

        For a consumer with a size limit only the first LOOK_ENTRIES messages count.
        """
        cdef Browser browser = self.browsers.get(consumer_id)
        cdef QueueConsumer consumer
        cdef QueueEntry entry
        if browser is not None:
            return browser.is_dry(now)
        consumer = self.consumers.get(consumer_id)
        if consumer is None or not consumer.most_bytes:
            return not self.line.has_for(consumer_id, now)
        for entry in self._next_to_go():
            if not (consumer.is_too_small_for(entry) or entry.is_past(now) or entry.is_shunned_by(consumer_id)):
                return False
        return True

    cdef list _next_to_go(self):
        return self.line.first(LOOK_ENTRIES)

    cpdef size_t refused_by(self, long consumer_id, double now) except? 0:
        """Return the size of the first waiting message if all that wait exceed this consumer's size limit, else 0.

        0, too, if another consumer of the queue takes larger messages. The first LOOK_ENTRIES messages count, without
        those that are expired or that this consumer shunned. For a browser: the size of the first message that was too
        large, if the browser has passed all messages and was shown none.
        """
        cdef size_t found = 0
        cdef QueueEntry entry
        cdef QueueConsumer consumer
        cdef Browser browser = self.browsers.get(consumer_id)
        if browser is not None:
            return browser.left_out_bytes if not browser.shown_count and browser.is_dry(now) else 0
        consumer = self.consumers[consumer_id]
        if self._has_roomier(consumer):
            return 0
        for entry in self._next_to_go():
            if entry.is_past(now) or entry.is_shunned_by(consumer_id):
                continue
            if not consumer.is_too_small_for(entry):
                return 0
            found = found or entry.message.size_bytes
        return found

    cdef bint _has_roomier(self, QueueConsumer consumer) noexcept:
        """Whether another consumer of the queue takes larger messages than this consumer."""
        cdef QueueConsumer other
        for other in self.consumers.values():
            if not other.most_bytes or other.most_bytes > consumer.most_bytes:
                return True
        return False

    @property
    def is_used(self):
        return bool(self.consumers or self.browsers)

    @property
    def is_hungry(self):
        """Whether a consumer of the queue has credit, so that a new message can be given at once."""
        return self.is_hungry_now()

    cdef bint is_hungry_now(self) noexcept:
        return len(self.ready) > 0

    cdef long long count_now(self) noexcept:
        return self.available_count + self.acquired_count + len(self.unreadable)

    # The next two functions count the messages that count against the queue's limits. Unreadable messages do not count,
    # as they would fill the queue for good.
    cdef long long limited_count(self) noexcept:
        return self.available_count + self.acquired_count

    cdef long long limited_bytes(self) noexcept:
        return self.size_bytes - self.unreadable_bytes

    @property
    def is_empty(self):
        return self.count_now() == 0

    # Time

    def next_deadline(self):
        """Return the monotonic time at which `on_time` next has messages to expire; None without deadlines."""
        cdef double deadline = self.deadline_now()
        return None if deadline == INFINITY else deadline

    cdef double deadline_now(self) except? -1:
        return self.deadlines.next_now()

    cpdef list on_time(self, double now):
        """Archive waiting entries past their deadlines, about a thousand per call; return the actions to carry out.

        `next_deadline` is in the past while more are due. Entries that consumers hold expire when they are returned.
        """
        cdef list actions = []
        while len(actions) < AT_ONCE and (each := self.deadlines.pop_due(now)) is not None:
            if type(each) is Pack:
                self._expire_in(each, now, actions)
            elif (<QueueEntry>each).standing == AVAILABLE:
                self._archive_there(each, _EXPIRED, actions)
        self._sweep()
        return actions

    def snapshot(self):
        return QueueSnapshot(
            available_count=self.available_count,
            acquired_count=self.acquired_count,
            unreadable_count=len(self.unreadable),
            size_bytes=self.size_bytes,
            consumer_count=len(self.consumers),
            browser_count=len(self.browsers),
            enqueued_total=self.next_position - self.first_position,
            next_position=self.next_position,
            departed_total={departure.value: count for departure, count in self.departed.items()},
        )

    # Within

    def _refuse_twice(self, long consumer_id):
        if consumer_id in self.consumers or consumer_id in self.browsers:
            raise LocalStateError(f"consumer {consumer_id} is already attached")

    cdef int _archive_there(self, QueueEntry entry, object departure, list actions) except -1:
        """Archive a waiting entry in place: the delivery order drops it once it comes to the front, or in `_sweep`."""
        self.archived_count += 1
        actions.append(self._archive(entry, departure))
        return 0

    cdef int _drop_front(self) except -1:
        """Drop archived entries at the front of each priority, so that the next step need not pass them."""
        self.archived_count = max(0, self.archived_count - self.line.drop_front())
        return 0

    cdef int _sweep(self) except -1:
        if self.archived_count > self.available_count + _STRIDE:
            self.line.sweep()
            self.archived_count = 0
        return 0

    # Packs

    cdef int _pack(self, int priority) except -1:
        self.line.pack(priority)
        return self._await_packs() if self.line.made else 0

    cdef int _await_packs(self) except -1:
        cdef Pack pack
        for pack in self.line.made:
            self.deadlines.add(pack.earliest_s, pack)
        self.line.made.clear()
        return 0

    cdef int _await_spent(self) except -1:
        """Add the deadlines of entries that wait singly again: their pack was opened at the front of the queue."""
        cdef Pack pack
        cdef QueueEntry entry
        for pack in self.line.spent:
            for entry in pack.entries if pack.earliest_s != INFINITY else ():
                if entry.standing == AVAILABLE:
                    self.deadlines.add(entry.message.deadline_s, entry)
            # The entries of the pack are dropped to free their memory, since ``deadlines`` may keep the pack for long.
            # With a browser they stay, since the browser may be showing these entries.
            if not self.browsers:
                pack.entries = []
        self.line.spent.clear()
        return 0

    cdef int _expire_in(self, Pack pack, double now, list actions) except -1:
        cdef QueueEntry entry
        if pack.is_spent:
            return 0
        for entry in pack.open():
            if entry.standing == AVAILABLE and entry.message.deadline_s <= now:
                self._archive_there(entry, _EXPIRED, actions)
        pack.drop_archived()
        return self.deadlines.add(max(pack.earliest_s, now + PATIENCE_S), pack)

    cdef int _conclude(self, QueueEntry entry, object verdict, double now, list actions) except -1:
        """Apply the verdict on an entry that a consumer held: archive the entry, or put it back into its place.

        FAILED raises the delivery-count first, and archives the entry at ``max_delivery_attempts``. An expired entry is
        archived, too.
        """
        self.acquired_count -= 1
        self.available_count += 1
        entry.standing = AVAILABLE
        if verdict is _ACCEPTED:
            actions.append(self._archive(entry, _WAS_ACCEPTED))
            return 0
        if verdict is _REJECTED:
            actions.append(self._archive(entry, _WAS_REJECTED))
            return 0
        if verdict is _FAILED:
            entry.delivery_count += 1
            if self.max_delivery_attempts and entry.delivery_count >= self.max_delivery_attempts:
                actions.append(self._archive(entry, _GIVEN_UP))
                return 0
        if entry.is_past(now):
            actions.append(self._archive(entry, _EXPIRED))
            return 0
        if verdict is _FAILED:
            actions.append(Recount(entry))
        return self.line.put_back(entry)

    cdef Archive _archive(self, QueueEntry entry, object departure):
        entry.standing = ARCHIVED
        self.available_count -= 1
        self.size_bytes -= entry.message.size_bytes
        self.departed[departure] += 1
        return Archive(entry, departure)

    cdef int _dispatch(self, double now, list actions) except -1:
        if self.browsers:
            for browser in self.browsers.values():
                self._browse(<Browser>browser, now, actions)
        if self.ready and self.line.used:
            self._give_what_waits(now, actions)
        return 0

    cdef int _give_what_waits(self, double now, list actions) except -1:
        cdef list passed_over = []
        cdef QueueEntry entry
        cdef QueueConsumer consumer
        while self.ready:
            entry = self._pop_front(now, actions)
            if entry is None:
                break
            consumer = self._choose(entry)
            if consumer is None:
                passed_over.append(entry)
                if self.choosy_count:
                    self.has_passed_over = self.choosy_count == len(self.consumers)
                    if len(passed_over) >= LOOK_ENTRIES:
                        break
            elif self._is_unmarked(entry):
                passed_over.append(entry)
                self._want_mark(entry, actions)
                break
            else:
                actions.append(self._give(entry, consumer))
        for entry in passed_over:
            self.line.put_back(entry)
        return 0

    cdef QueueEntry _pop(self):
        cdef QueueEntry entry = self.line.pop()
        if self.line.spent:
            self._await_spent()
        return entry

    cdef QueueEntry _pop_front(self, double now, list actions):
        cdef QueueEntry entry
        while (entry := self._pop()) is not None:
            if not entry.is_past(now):
                return entry
            actions.append(self._archive(entry, _EXPIRED))
        return None

    cdef QueueConsumer _choose(self, QueueEntry entry):
        """Return the consumer served longest ago of those with credit that may get this entry; None for none."""
        cdef QueueConsumer consumer
        for consumer in self.ready.values():
            if not (entry.is_shunned_by(consumer.consumer_id) or consumer.is_too_small_for(entry)):
                return consumer
        return None

    cdef Deliver _give(self, QueueEntry entry, QueueConsumer consumer):
        entry.standing = ACQUIRED
        self.available_count -= 1
        self.acquired_count += 1
        consumer.acquired[entry] = None
        consumer.credit -= 1
        if consumer.credit == 0:
            del self.ready[consumer.consumer_id]
        elif len(self.ready) > 1:
            del self.ready[consumer.consumer_id]
            self.ready[consumer.consumer_id] = consumer
        return Deliver(consumer.consumer_id, entry)

    cdef bint _is_unmarked(self, QueueEntry entry) noexcept:
        if not self.is_durable or not entry.message.is_stored:
            return False
        return entry.message.message_id > self.marks[entry.message.priority]

    cdef int _want_mark(self, QueueEntry entry, list actions) except -1:
        cdef int priority = entry.message.priority
        if self.wanted_marks[priority] < entry.message.message_id:
            self.wanted_marks[priority] = entry.message.message_id + _STRIDE
            actions.append(WantMark(priority, self.wanted_marks[priority]))
        return 0

    cdef int _browse(self, Browser browser, double now, list actions) except -1:
        cdef QueueEntry entry
        while browser.credit > 0 and (entry := browser.pop(now)) is not None:
            browser.credit -= 1
            actions.append(Deliver(browser.consumer_id, entry))
        return 0


def _position_of(QueueEntry entry):
    return entry.position


def _place_of(QueueEntry entry):
    return -entry.message.priority, entry.position
