"""The delivery order of a queue: the most urgent messages first, equals in order of arrival. [3.2.1]

A level holds the waiting messages of one priority, in three parts from the front to the back; entries that consumers
returned are in a heap of their own, and go out in their old places:

    fresh      entries to be given next
    later      packs, and runs of entries that cannot be packed; only while there is a tail
    tail       entries that wait to be packed; begun once FRONT_ENTRIES are in fresh
"""

from broker.queueing.message cimport ARCHIVED, AVAILABLE, PACKED, QueueEntry
from broker.queueing.packed cimport PACK_ENTRIES, Pack, Packer, can_be_packed

import heapq
from bisect import bisect_left
from collections import deque

cdef enum:
    LEVELS = 10

# Positions below and above those of all entries.
cdef long long NOWHERE = -1, FURTHEST = 0x7FFFFFFFFFFFFFFF


cdef class PriorityLevel:
    """The waiting messages of one priority in one queue."""

    def __cinit__(self, unsigned char priority, DeliveryOrder line):
        self.priority = priority
        self.front_entries, self.pack_entries = line.front_entries, line.pack_entries
        self.made, self.spent = line.made, line.spent
        self.fresh = deque()
        self.returned = []

    cdef int append(self, QueueEntry entry) except -1:
        if self.restoring is not None:
            self._restore_shared(entry)
        elif self.tail is not None:
            self.tail.append(entry)
        elif len(self.fresh) < self.front_entries:
            self.fresh.append(entry)
        else:
            self.later, self.tail = deque(), deque((entry,))
        return 0

    cdef int restore(self, long long message_id, long long position, size_t size_bytes, double deadline_s,
                     unsigned int delivery_count) except -1:
        """Append a message from the store at the back of the level, in a pack, when the broker starts."""
        if self.tail is None:
            self.later, self.tail = deque(), deque()
        while self.tail:
            self._append_later(self.tail.popleft())
        if self.restoring is None:
            self.restoring = Packer(self.priority)
        self.restoring.add(message_id, position, size_bytes, deadline_s, delivery_count)
        return self._flush(self.restoring) if self.restoring.count == self.pack_entries else 0

    cdef int _restore_shared(self, QueueEntry entry) except -1:
        """Append, when the broker starts, an entry whose message is in several queues, or large, or was moved.

        The entry goes into a pack if possible.
        """
        if can_be_packed(entry):
            self.restoring.add_entry(entry)
            entry.standing = PACKED
            return self._flush(self.restoring) if self.restoring.count == self.pack_entries else 0
        self.end_restoring()
        return self._append_later(entry)

    cdef int end_restoring(self) except -1:
        cdef Packer packer = self.restoring
        self.restoring = None
        return 0 if packer is None else self._flush(packer)

    cdef int pack(self) except -1:
        """Pack entries of the tail, except the newest, once the bodies of their messages have left the memory.

        An entry whose message is in several queues is packed together with the message and its body.
        """
        cdef Packer packer
        cdef QueueEntry entry
        cdef int _number
        # The newest entries stay unpacked, and packing stops at a message whose body is in memory: bodies leave the
        # memory in order of arrival.
        while self.tail is not None and len(self.tail) >= 2 * self.pack_entries:
            entry = self.tail[self.pack_entries - 1]
            if entry.message.body is not None and entry.message.references == 1:
                break
            packer = Packer(self.priority)
            for _number in range(self.pack_entries):
                entry = self.tail.popleft()
                if entry.standing == ARCHIVED:
                    continue
                if can_be_packed(entry):
                    packer.add_entry(entry)
                    entry.standing = PACKED
                    continue
                self._flush(packer)
                self._append_later(entry)
            self._flush(packer)
        return 0

    cdef int sweep(self) except -1:
        self.fresh = _waiting(self.fresh)
        self.returned = [place for place in self.returned if (<QueueEntry>(<tuple>place)[1]).standing == AVAILABLE]
        heapq.heapify(self.returned)
        if self.tail is not None:
            self.later = _waiting_later(self.later)
            self.tail = _waiting(self.tail)
        return 0

    cdef Py_ssize_t drop_front(self) except -1:
        """Drop archived entries and empty packs that no waiting entry precedes; return the number of entries dropped."""
        cdef Py_ssize_t dropped = _drop_archived(self.fresh)
        if self.fresh or self.tail is None:
            return dropped
        while self.later and type(self.later[0]) is Pack and (<Pack>self.later[0]).count == 0:
            self.later.popleft()
        return dropped if self.later else dropped + _drop_archived(self.tail)

    cdef QueueEntry front(self):
        """Return the first waiting entry, which stays in the level; None when there is none.

        Archived entries before it are dropped.
        """
        cdef QueueEntry entry
        while (entry := self.pop()) is not None:
            if entry.standing != ARCHIVED:
                heapq.heappush(self.returned, (entry.position, entry))
                return entry
        return None

    cdef QueueEntry pop(self):
        if not self.fresh and self.tail is not None:
            self._bring_forward()
        if not self.returned:
            return self.fresh.popleft() if self.fresh else None
        if self.fresh and (<QueueEntry>self.fresh[0]).position < (<tuple>self.returned[0])[0]:
            return self.fresh.popleft()
        return heapq.heappop(self.returned)[1]

    cdef bint has_for(self, long consumer_id, double now) except -1:
        for _, entry in self.returned:
            if _is_for(entry, consumer_id, now):
                return True
        for entry in self.fresh:
            if _is_for(entry, consumer_id, now):
                return True
        for each in self.later or ():
            if type(each) is Pack:
                if (<Pack>each).has_available(now):
                    return True
                continue
            for entry in <list>each:
                if _is_for(entry, consumer_id, now):
                    return True
        for entry in self.tail or ():
            if _is_for(entry, consumer_id, now):
                return True
        return False

    def in_order(self, long long after, long long before):
        """Yield the waiting entries of the level with positions above ``after`` and below ``before``, front to back.

        Packs with such entries are yielded whole.
        """
        cdef list returned = []
        cdef Py_ssize_t place = 0
        cdef QueueEntry entry
        for _, entry in self.returned:
            _add_if_between(entry, after, before, returned)
        # Entries that consumers returned precede everything in ``later`` and ``tail``.
        returned.sort(key=_position_of)
        for entry in self.fresh:
            if entry.position >= before:
                break
            while place < len(returned) and (<QueueEntry>returned[place]).position < entry.position:
                yield returned[place]
                place += 1
            if after < entry.position and entry.standing == AVAILABLE:
                yield entry
        yield from returned[place:]
        for each in self.later or ():
            if _first_position(each) >= before:
                return
            if _last_position(each) <= after:
                continue
            if type(each) is Pack:
                if (<Pack>each).count > 0:
                    yield each
                continue
            for entry in <list>each:
                if entry.standing == AVAILABLE and after < entry.position < before:
                    yield entry
        for entry in self.tail or ():
            if entry.position >= before:
                return
            if entry.standing == AVAILABLE and entry.position > after:
                yield entry

    cdef int add_at(self, list positions, set wanted, list found, list opened) except -1:
        """Append the waiting entries at ``positions`` to ``found``, and packs opened for it to ``opened``.

        ``wanted`` are the same positions, which rise in ``positions``; there is at least one.
        """
        cdef Pack pack
        cdef Py_ssize_t place
        cdef long long first = positions[0], last = positions[len(positions) - 1]
        for _, entry in self.returned:
            _add_if_wanted(entry, first, last, wanted, found)
        for entry in self.fresh:
            _add_if_wanted(entry, first, last, wanted, found)
        for each in self.later or ():
            place = bisect_left(positions, _first_position(each))
            if place == len(positions) or positions[place] > _last_position(each):
                continue
            if type(each) is Pack:
                pack = each
                if pack.count == 0:
                    continue
                entries = pack.open()
                opened.append(pack)
            else:
                entries = each
            for entry in <list>entries:
                _add_if_wanted(entry, first, last, wanted, found)
        for entry in self.tail or ():
            _add_if_wanted(entry, first, last, wanted, found)
        return 0

    cdef int add_beyond(self, long long position, Py_ssize_t count, list found, list opened) except -1:
        """Append to ``found`` at least the ``count`` first waiting entries with positions above ``position``, if any.

        They are in no order. Packs that had to be opened for it are appended to ``opened``.
        """
        cdef Py_ssize_t enough
        cdef Pack pack
        for _, entry in self.returned:
            _add_if_between(entry, position, FURTHEST, found)
        enough = len(found) + count
        for entry in self.fresh:
            if len(found) >= enough:
                return 0
            _add_if_between(entry, position, FURTHEST, found)
        for each in self.later or ():
            if len(found) >= enough:
                return 0
            if _last_position(each) <= position:
                continue
            if type(each) is Pack:
                pack = each
                if pack.count == 0:
                    continue
                entries = pack.open()
                opened.append(pack)
            else:
                entries = each
            for entry in <list>entries:
                _add_if_between(entry, position, FURTHEST, found)
        for entry in self.tail or ():
            if len(found) >= enough:
                return 0
            _add_if_between(entry, position, FURTHEST, found)
        return 0

    cdef int _bring_forward(self) except -1:
        cdef Pack pack
        while not self.fresh and self.later:
            each = self.later.popleft()
            if type(each) is Pack:
                pack = each
                self.fresh.extend(pack.open())
                pack.is_spent = True
                self.spent.append(pack)
            else:
                self.fresh.extend(each)
        if not self.fresh:
            self.fresh = self.tail
            self.later = self.tail = None
        return 0

    cdef int _flush(self, Packer packer) except -1:
        cdef Pack pack
        if packer.count:
            pack = packer.take()
            self.later.append(pack)
            self.made.append(pack)
        return 0

    cdef int _append_later(self, QueueEntry entry) except -1:
        """Append an entry that cannot be packed to the run at the end of ``later``, or to a new run there."""
        last = self.later[len(self.later) - 1] if self.later else None
        if type(last) is list and len(<list>last) < self.pack_entries:
            (<list>last).append(entry)
        else:
            self.later.append([entry])
        return 0


cdef class DeliveryOrder:
    """The entries and packs that wait in one queue, in the order in which they are to be given to consumers.

    Always: each entry is AVAILABLE or ARCHIVED; archived entries are dropped when they come to the front
    Always: bit p of ``used`` is set while an entry or pack of priority p waits

    ``made`` lists new packs, and ``spent`` packs whose entries wait singly again, until the queue has added the
    deadlines of these packs and entries.
    """

    def __cinit__(self, Py_ssize_t front_entries, Py_ssize_t pack_entries):
        self.front_entries, self.pack_entries = front_entries, min(pack_entries, <Py_ssize_t>PACK_ENTRIES)
        # The level of a priority is made at its first message: most queues see one priority, and an empty deque has 600
        # bytes.
        self.levels = [None] * LEVELS
        self.made, self.spent = [], []

    cdef int append(self, QueueEntry entry) except -1:
        """Add an entry that has just arrived, behind all others of its priority."""
        return self._level(entry.message.priority).append(entry)

    cdef int restore(self, int priority, long long message_id, long long position, size_t size_bytes,
                     double deadline_s, unsigned int delivery_count) except -1:
        """Add a message from the store, behind all others of its priority, when the broker starts.

        Call `end_restoring` after the last message.
        """
        return self._level(priority).restore(message_id, position, size_bytes, deadline_s, delivery_count)

    cdef int end_restoring(self) except -1:
        for level in self.levels:
            if level is not None:
                (<PriorityLevel>level).end_restoring()
        return 0

    cdef int pack(self, int priority) except -1:
        """Pack the entries of this priority that are far behind the front of the queue."""
        return (<PriorityLevel>self.levels[priority]).pack()

    cdef int sweep(self) except -1:
        """Drop all archived entries outside of packs, and all empty packs, wherever they are in the order."""
        for level in self.levels:
            if level is not None:
                (<PriorityLevel>level).sweep()
        return 0

    cdef Py_ssize_t drop_front(self) except -1:
        """Drop archived entries at the fronts of all levels; return their number."""
        cdef Py_ssize_t dropped = 0
        for level in self.levels:
            if level is not None:
                dropped += (<PriorityLevel>level).drop_front()
        return dropped

    cdef int put_back(self, QueueEntry entry) except -1:
        """Put back an entry that `pop` returned before, such as a message that a consumer released, into its old place.
        """
        heapq.heappush(self._level(entry.message.priority).returned, (entry.position, entry))
        return 0

    cdef QueueEntry pop(self):
        """Remove and return the next entry to give to a consumer; None when nothing waits."""
        cdef int priority = LEVELS - 1
        cdef QueueEntry entry
        while self.used:
            while not self.used >> priority & 1:
                priority -= 1
            entry = (<PriorityLevel>self.levels[priority]).pop()
            if entry is None:
                self.used &= ~(1u << priority)
            elif entry.standing != ARCHIVED:
                return entry
        return None

    cdef QueueEntry pop_oldest(self):
        """Remove and return the waiting entry that arrived first, regardless of priority; None when nothing waits."""
        cdef QueueEntry oldest = self.oldest()
        return None if oldest is None else (<PriorityLevel>self.levels[oldest.message.priority]).pop()

    cdef QueueEntry oldest(self):
        cdef int priority
        cdef QueueEntry entry, oldest = None
        for priority in range(LEVELS):
            if self.used >> priority & 1:
                entry = (<PriorityLevel>self.levels[priority]).front()
                if entry is not None and (oldest is None or entry.position < oldest.position):
                    oldest = entry
        return oldest

    cdef bint has_for(self, long consumer_id, double now) except -1:
        """Whether an entry waits that could be given to this consumer: not expired, nor shunned; any size will do."""
        cdef int priority
        for priority in range(LEVELS):
            if self.used >> priority & 1 and (<PriorityLevel>self.levels[priority]).has_for(consumer_id, now):
                return True
        return False

    def in_order(self, int priority=LEVELS - 1, long long after=NOWHERE, long long before=FURTHEST):
        """Yield waiting entries, and packs, in delivery order, which must not change meanwhile.

        They are those of ``priority`` with positions above ``after``, then those of lower priorities; in both cases with
        positions below ``before``. Packs with such entries are yielded whole.
        """
        cdef int lower
        for lower in range(priority, -1, -1):
            level = self.levels[lower]
            if level is not None:
                yield from (<PriorityLevel>level).in_order(after if lower == priority else NOWHERE, before)

    cdef list at(self, list positions, list opened):
        """Return the waiting entries at ``positions``, which rise; packs opened for it are appended to ``opened``."""
        cdef list found = []
        cdef set wanted = set(positions)
        for level in self.levels:
            if level is not None:
                (<PriorityLevel>level).add_at(positions, wanted, found, opened)
        found.sort(key=_position_of)
        return found

    cdef list first(self, Py_ssize_t count):
        """Return the first ``count`` waiting entries, those in packs included; the delivery order does not change."""
        cdef list found = [], entries
        for each in self.in_order():
            if len(found) >= count:
                break
            entries = (<Pack>each).peek() if type(each) is Pack else [each]
            found += [entry for entry in entries if (<QueueEntry>entry).standing == AVAILABLE]
        return found[:count]

    cdef list beyond(self, long long position, Py_ssize_t count, list opened):
        """Return the ``count`` first waiting entries with positions above ``position``, in order of their positions.

        Packs that had to be opened for it are appended to ``opened``; the caller closes them.
        """
        cdef list found = []
        for level in self.levels:
            if level is not None:
                (<PriorityLevel>level).add_beyond(position, count, found, opened)
        found.sort(key=_position_of)
        return found[:count]

    cdef PriorityLevel _level(self, int priority):
        assert 0 <= priority < LEVELS, priority
        cdef PriorityLevel level = self.levels[priority]
        if level is None:
            level = self.levels[priority] = PriorityLevel(priority, self)
        self.used |= 1u << priority
        return level


cdef Py_ssize_t _drop_archived(object line) except -1:
    """Drop the archived entries at the front of ``line``, a deque; return their number."""
    cdef Py_ssize_t dropped = 0
    while line and (<QueueEntry>line[0]).standing == ARCHIVED:
        line.popleft()
        dropped += 1
    return dropped


cdef object _waiting(object line):
    return deque([entry for entry in line if (<QueueEntry>entry).standing == AVAILABLE])


cdef object _waiting_later(object later):
    """Return the packs and runs of ``later`` that have waiting entries; archived entries of runs are dropped."""
    cdef list kept = []
    for each in later:
        if type(each) is list:
            each = [entry for entry in <list>each if (<QueueEntry>entry).standing == AVAILABLE]
            if each:
                kept.append(each)
        elif (<Pack>each).count > 0:
            kept.append(each)
    return deque(kept)


cdef int _add_if_between(QueueEntry entry, long long after, long long before, list found) except -1:
    if after < entry.position < before and entry.standing == AVAILABLE:
        found.append(entry)
    return 0


cdef int _add_if_wanted(QueueEntry entry, long long first, long long last, set wanted, list found) except -1:
    if first <= entry.position <= last and entry.standing == AVAILABLE and entry.position in wanted:
        found.append(entry)
    return 0


cdef long long _first_position(each) noexcept:
    """Return the least position in a pack or run of ``later``."""
    return (<Pack>each).first_position if type(each) is Pack else (<QueueEntry>(<list>each)[0]).position


cdef long long _last_position(each) noexcept:
    return (<Pack>each).last_position if type(each) is Pack else (<QueueEntry>(<list>each)[len(<list>each) - 1]).position


cdef bint _is_for(QueueEntry entry, long consumer_id, double now) except -1:
    return entry.standing == AVAILABLE and not entry.is_shunned_by(consumer_id) and not entry.is_past(now)


def _position_of(QueueEntry entry):
    return entry.position
