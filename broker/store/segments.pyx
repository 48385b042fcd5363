"""The segments of a store, as memory knows them, and the rows to write for a batch: a segment is a row of messages.

    segment   consecutive messages, up to SEGMENT_MESSAGES, that were committed together: their bodies, and an index
    holding   what one queue or subscription still has of a segment: a number for each message

A message leaves a queue by a 0 in the queue's holding; a holding is deleted when all its numbers are 0, a segment when
no queue has any of its messages. FORMAT.md shows the bytes. These objects have no bodies, and the numbers of a holding,
two bytes for each message, only if a message has left the queue or was delivered without being accepted.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from broker.store.message_index cimport WORDS, Slot, Slots, put_slot, u64

from bisect import bisect_right
from dataclasses import dataclass, field
from zlib import crc32

SEGMENT_MESSAGES = 256
SEGMENT_BYTES = 512 << 10

cdef enum:
    MOST_SLOTS = 256
    MOST_COUNT = 65534

cdef long long _SEGMENT_BYTES = SEGMENT_BYTES
cdef Count _ONES[MOST_SLOTS]
for _slot in range(MOST_SLOTS):
    _ONES[_slot] = 1


@dataclass(slots=True)
class SegmentRows:
    """The rows of the tables segment and holding to write and to delete for a batch."""

    segments: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    """New rows of the table segment, as (segment_id, message_index, bodies)."""
    holdings: list[tuple[int, int, bytes]] = field(default_factory=list)
    """New and changed rows of the table holding, as (queue_id, segment_id, counts)."""
    gone_holdings: dict[int, list[int]] = field(default_factory=dict)
    """The rows of the table holding to delete, as lists of segment_ids by queue_id: the queue has no message there."""
    gone_segments: list[int] = field(default_factory=list)
    """The segment_ids of the rows of the table segment to delete: no queue has any of their messages any more."""


cdef class Holding:
    """The part of the messages of a segment that one queue or subscription has.

    ``counts`` has for each message of the segment 0 if the queue does not, or no longer, have the message, else its
    delivery-count plus 1; NULL while all counts are 1, as in most segments of a long queue. ``left`` is the number of
    messages of the segment that are still in the queue.
    """

    cdef object queue_id
    cdef Segment segment
    cdef Count *counts
    cdef int left
    cdef bint is_stored
    cdef bint is_changed

    def __cinit__(self, queue_id, Segment segment):
        self.queue_id, self.segment = queue_id, segment
        self._allocate()

    def __dealloc__(self):
        free(self.counts)

    cdef int _allocate(self) except -1:
        self.counts = <Count *>calloc(self.segment.slots, sizeof(Count))
        if self.counts is NULL:
            raise MemoryError
        return 0

    cdef Count at(self, int slot) noexcept:
        return 1 if self.counts is NULL else self.counts[slot]

    cdef int set(self, int slot, Count count) except -1:
        if self.counts is NULL:
            self._allocate()
            memcpy(self.counts, _ONES, self.segment.slots * sizeof(Count))
        self.left += (count != 0) - (self.counts[slot] != 0)
        self.counts[slot] = count
        return 0

    cdef int compact(self) except -1:
        """Free the memory of ``counts`` if all are 1; call when no change of the holding is expected soon."""
        if self.segment.slots > MOST_SLOTS:
            return 0
        if self.counts is not NULL and memcmp(self.counts, _ONES, self.segment.slots * sizeof(Count)) == 0:
            free(self.counts)
            self.counts = NULL
        return 0

    cdef bytes blob(self):
        cdef Count *counts = &_ONES[0] if self.counts is NULL else self.counts
        return PyBytes_FromStringAndSize(<char *>counts, self.segment.slots * sizeof(Count))


cdef class Segment:
    """A segment in memory: the messages from id ``first`` up to, and without, ``first + slots``, with their holdings.

    ``needed`` is the number of these messages that any queue still has.
    """

    cdef long long first
    cdef int slots
    cdef int needed
    # The one holding of most segments is in ``sole``, without a dict, which would take half of all memory.
    cdef Holding sole
    cdef dict more

    def __cinit__(self, long long first, int slots):
        self.first, self.slots = first, slots

    cdef Holding find(self, object queue_id):
        if self.sole is not None and self.sole.queue_id == queue_id:
            return self.sole
        return self.more.get(queue_id) if self.more is not None else None

    cdef Holding holding_of(self, object queue_id):
        cdef Holding holding = self.find(queue_id)
        if holding is not None:
            return holding
        holding = Holding(queue_id, self)
        if self.sole is None:
            self.sole = holding
        else:
            if self.more is None:
                self.more = {}
            self.more[queue_id] = holding
        return holding

    cdef int forget(self, object queue_id) except -1:
        if self.sole is not None and self.sole.queue_id == queue_id:
            self.sole = None
        elif self.more is not None:
            self.more.pop(queue_id, None)
        return 0

    cdef bint holds_something(self) except -1:
        """Whether any queue has a message of the segment; even a lost queue counts, whose row is unreadable."""
        cdef Holding holding
        for holding in self.holdings():
            if holding.left:
                return True
        return False

    cdef list holdings(self):
        cdef list found = [] if self.sole is None else [self.sole]
        return found if self.more is None else [*found, *self.more.values()]


cdef class _Filling:
    """A new segment while messages of a batch are added to it, with the content of its row for the store."""

    cdef Segment segment
    cdef u64 index[WORDS * MOST_SLOTS]
    cdef list bodies
    cdef long long size_bytes

    def __cinit__(self, long long first):
        self.segment = Segment(first, 0)
        self.bodies = []

    cdef bint is_next(self, long long message_id) noexcept:
        if message_id != self.segment.first + self.segment.slots:
            return False
        return self.segment.slots < MOST_SLOTS and self.size_bytes < _SEGMENT_BYTES

    cdef int add(self, u64 size_bytes, int priority, object expires_at_ms, bytes body, u64 large_sum) except -1:
        cdef int number = self.segment.slots
        cdef Slot slot
        slot.size_bytes, slot.priority, slot.is_large = size_bytes, priority, body is None
        slot.expires_at_ms = 0 if expires_at_ms is None else expires_at_ms
        put_slot(self.index + WORDS * number, number == 0, slot, large_sum if body is None else crc32(body))
        self.segment.slots = number + 1
        self.segment.needed += 1
        if body is not None:
            self.bodies.append(body)
            self.size_bytes += size_bytes
        return 0

    cdef tuple row(self):
        index = PyBytes_FromStringAndSize(<char *>self.index, self.segment.slots * WORDS * sizeof(u64))
        return self.segment.first, index, b"".join(self.bodies)


cdef class Segments:
    """All segments of a store as memory knows them. Used by the thread that loads, then by the thread that commits."""

    cdef dict by_first
    cdef list firsts
    cdef Segment latest
    cdef long long floor

    def __init__(self):
        self.floor = 1
        self.by_first = {}
        self.firsts = []

    def __len__(self):
        return len(self.firsts)

    def first_ids(self):
        return list(self.firsts)

    @property
    def next_message_id(self):
        """The first message id beyond all segments, for new messages: an id in use would mix two messages up."""
        cdef Segment segment
        cdef long long beyond = self.floor
        for segment in self.by_first.values():
            beyond = max(beyond, segment.first + segment.slots)
        return beyond

    def slots_of(self, long long first):
        return (<Segment>self.by_first[first]).slots

    def keep_clear_of(self, long long first):
        """Have new message ids begin above all ids that the segment ``first`` may have; 0: there is no such segment.

        The segment may be on disk, but is not loaded; nothing is done for a loaded segment.
        """
        if first and first not in self.by_first:
            self.floor = first + MOST_SLOTS

    def load(self, long long first, int slots):
        """Add a segment of the store, without its holdings, which `load_holding` adds next."""
        self._add(Segment(first, slots))

    def load_holding(self, queue_id, long long first, bytes counts):
        cdef Segment segment = self.by_first[first]
        cdef Holding holding = segment.holding_of(queue_id)
        cdef int slot
        if len(counts) != segment.slots * <Py_ssize_t>sizeof(Count):
            raise KeyError(f"holding {queue_id}, {first}: {len(counts)} bytes of counts for {segment.slots} messages")
        if holding.counts is NULL:
            holding._allocate()
        holding.left = 0
        memcpy(holding.counts, PyBytes_AS_STRING(counts), len(counts))
        for slot in range(segment.slots):
            holding.left += holding.counts[slot] != 0
        holding.compact()
        holding.is_stored = True

    def count_needed(self, long long first):
        """Return, and note in the segment's ``needed``, how many messages of a loaded segment any queue has."""
        cdef Segment segment = self.by_first[first]
        cdef Holding holding
        cdef list holdings = segment.holdings()
        cdef int slot
        segment.needed = 0
        for slot in range(segment.slots):
            for holding in holdings:
                if holding.at(slot):
                    segment.needed += 1
                    break
        return segment.needed

    def is_needed(self, long long message_id):
        """Whether any queue of the store has the message with this id."""
        cdef Py_ssize_t place = bisect_right(self.firsts, message_id)
        cdef Segment segment
        if place == 0:
            return False
        segment = self.by_first[self.firsts[place - 1]]
        slot = message_id - segment.first
        return slot < segment.slots and any((<Holding>each).at(slot) for each in segment.holdings())

    def holdings_of(self, long long first):
        """Return (queue_id, counts) of each queue that has a holding of the segment."""
        cdef Segment segment = self.by_first[first]
        return [((<Holding>each).queue_id, (<Holding>each).blob()) for each in segment.holdings()]

    def raise_counts(self, long long first, bytes message_index, dict marks):
        """Raise the delivery-count of each message of a segment at or below the seen mark of its queue and priority.

        Return the rows of the changed holdings. ``marks`` are by queue_id, then priority.
        """
        cdef Segment segment = self.by_first[first]
        cdef Slots index = Slots(message_index)
        cdef Holding holding
        cdef dict of_queue
        cdef list changed = []
        cdef int slot
        cdef long long mark
        for holding in segment.holdings():
            of_queue = marks.get(holding.queue_id)
            if of_queue is None:
                continue
            is_changed = False
            for slot in range(segment.slots):
                mark = of_queue.get(index.at(slot).priority, 0)
                if 0 < holding.at(slot) <= MOST_COUNT and first + slot <= mark:
                    holding.set(slot, holding.at(slot) + 1)
                    is_changed = True
            if is_changed:
                changed.append((holding.queue_id, first, holding.blob()))
        return changed

    def apply(self, batch, dict large_sums=None):
        """Return the rows to write for a WriteBatch, and change the segments in memory as if the rows were written.

        ``large_sums`` has the CRC-32 of each body in a file of its own, by message id.
        """
        cdef list changed = []
        rows = SegmentRows()
        self._add_messages(batch.messages, large_sums or {}, rows.segments)
        for queue_id, message_id, count in batch.entries:
            self._set_count(queue_id, message_id, count + 1, changed)
        for (queue_id, message_id), count in batch.counts.items():
            self._set_count(queue_id, message_id, count + 1, changed)
        for queue_id, message_ids in batch.archived.items():
            for message_id in message_ids:
                self._set_count(queue_id, message_id, 0, changed)
        for queue_id in batch.dropped_queues:
            self._drop_queue(queue_id)
        for message_id in batch.dropped_messages:
            self._drop_message(message_id, rows.gone_segments)
        for holding in changed:
            self._write(<Holding>holding, rows)
        return rows

    # Within
    cdef int _add_messages(self, list messages, dict large_sums, list rows) except -1:
        cdef _Filling filling = None
        for message_id, size_bytes, priority, expires_at_ms, body in messages:
            if filling is None or not filling.is_next(message_id):
                if filling is not None:
                    rows.append(filling.row())
                filling = _Filling(message_id)
                self._add(filling.segment)
            filling.add(size_bytes, priority, expires_at_ms, body, large_sums.get(message_id, 0) if body is None else 0)
        if filling is not None:
            rows.append(filling.row())
        return 0

    cdef int _add(self, Segment segment) except -1:
        # The segment of a large message may come after segments with higher ids: the message got its id with its first
        # bytes, and its segment is added once the message is complete.
        if not self.firsts or segment.first > self.firsts[len(self.firsts) - 1]:
            self.firsts.append(segment.first)
        else:
            self.firsts.insert(bisect_right(self.firsts, segment.first), segment.first)
        self.by_first[segment.first] = segment
        return 0

    cdef Segment _find(self, long long message_id):
        cdef Segment segment = self.latest
        cdef Py_ssize_t place
        if segment is not None and segment.first <= message_id < segment.first + segment.slots:
            return segment
        place = bisect_right(self.firsts, message_id)
        if place == 0:
            raise KeyError(f"no segment has message {message_id}")
        self.latest = self.by_first[self.firsts[place - 1]]
        return self.latest

    cdef int _set_count(self, object queue_id, long long message_id, long long count, list changed) except -1:
        cdef Segment segment = self._find(message_id)
        cdef Holding holding = segment.holding_of(queue_id)
        cdef int slot = <int>(message_id - segment.first)
        if not 0 <= slot < segment.slots:
            raise KeyError(f"no segment has message {message_id}")
        holding.set(slot, <Count>min(count, MOST_COUNT + 1))
        if not holding.is_changed:
            holding.is_changed = True
            changed.append(holding)
        return 0

    cdef int _write(self, Holding holding, object rows) except -1:
        cdef Segment segment = holding.segment
        holding.is_changed = False
        if segment.find(holding.queue_id) is not holding:
            return 0  # the queue was dropped, and its holdings are deleted with it
        if holding.left:
            holding.is_stored = True
            rows.holdings.append((holding.queue_id, segment.first, holding.blob()))
            return holding.compact()
        segment.forget(holding.queue_id)
        if holding.is_stored:
            rows.gone_holdings.setdefault(holding.queue_id, []).append(segment.first)
        return 0

    cdef int _drop_queue(self, object queue_id) except -1:
        for segment in self.by_first.values():
            (<Segment>segment).forget(queue_id)
        return 0

    cdef int _drop_message(self, long long message_id, list gone) except -1:
        cdef Segment segment = self._find(message_id)
        segment.needed -= 1
        if segment.needed or segment.holds_something():
            return 0
        gone.append(segment.first)
        del self.by_first[segment.first]
        del self.firsts[bisect_right(self.firsts, segment.first) - 1]
        self.latest = None
        return 0
