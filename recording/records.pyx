"""Records of deliveries: outcome and latency of each delivery, in slots of fixed size in a ring that a writer empties.

Each node has one recorder, which is the node's clock too. The ring is memory that outlives the process, laid out as in
`recording.ring_format`. Level FULL writes a record for each delivery at settlement; level SUMMARY writes sums of equal
deliveries each second. No delivery waits for the writer: a record without room is dropped and counted. Times are
microseconds of the monotonic clock, read once for each batch of input.

Part 0 in a record: the whole way of a delivery, from the incoming link to the last taker (outgoing link). A multicast
leaves part 1 for the sender's delivery, and part 2 for each copy with the outcome of the copy. So parts 0 and 1 count
arrivals, parts 0 and 2 departures. A delivery that the router had not begun to forward when the sender was lost leaves
no record.
"""

import json

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcpy

from wire.proton cimport pn
from recording.traffic cimport Alike, TrafficSums

from recording import ring_format as ring

cdef extern from *:
    """
    #define store_now(at, value) __atomic_store_n((unsigned long long *)(at), (value), __ATOMIC_RELEASE)
    #define load_now(at) __atomic_load_n((unsigned long long *)(at), __ATOMIC_ACQUIRE)
    """
    void store_now(unsigned char *at, unsigned long long value) noexcept nogil
    unsigned long long load_now(unsigned char *at) noexcept nogil

cdef enum:
    SECOND_US = 1000000
    DELIVERY = 1
    TRAFFIC = 2
    TEXT = 255
    # Sums of a second that are written before they are counted as written.
    SUMS_AT_ONCE = 1024

cdef size_t HEADER_BYTES = ring.HEADER_BYTES
cdef size_t WRITTEN_AT = ring.WRITTEN_AT, TAKEN_AT = ring.TAKEN_AT
cdef size_t DROPPED_AT = ring.DROPPED_AT, CLOCK_AT = ring.CLOCK_AT, BEAT_AT = ring.BEAT_AT
cdef size_t OVERWRITES_AT = ring.OVERWRITES_AT
cdef size_t LAST_SLOTS = ring.LAST_SLOTS, AHEAD_PART = ring.AHEAD_PART
cdef unsigned int LARGEST = 0xFFFFFFFF

RECORD_LEVELS = {"off": OFF, "summary": SUMMARY, "full": FULL}


cdef class Recorder:
    """Writes the records of one node to ``memory``, a ring with a complete header; without ``memory``, records nothing.

    ``level`` names the record level of links and queues that have no level of their own. The node sets the time of the
    recorder, its clock, with `set_now` at each input, with or without a ring.
    """

    def __cinit__(self, memory=None, str level="off"):
        self.changes, self.restless, self.moved = [], [], []
        self.decisions = Decisions()
        if memory is None:
            return
        self.traffic = TrafficSums()
        PyObject_GetBuffer(memory, &self.buffer, PyBUF_WRITABLE)
        self.has_buffer = True
        self.level = RECORD_LEVELS[level]
        self.header = <unsigned char *>self.buffer.buf
        self.slots = <Slot *>(self.header + HEADER_BYTES)
        self.capacity = (self.buffer.len - HEADER_BYTES) // sizeof(Slot)
        # The count of drops in the header of a new ring starts with the records that were lost with removed rings of
        # the node's earlier runs.
        self.dropped = load_now(self.header + DROPPED_AT)

    def __dealloc__(self):
        self.close()

    def close(self):
        """Let go of the ring's memory: from now on the recorder records nothing."""
        self.capacity = 0
        self.level = OFF
        if self.has_buffer:
            self.has_buffer = False
            PyBuffer_Release(&self.buffer)

    # Deliveries
    cdef void write(
        self, unsigned char level, unsigned long long start_us, size_t size, unsigned int incoming,
        unsigned int outgoing, size_t outcome, unsigned char part,
    ) noexcept:  # fmt: skip
        cdef unsigned int took_us = <unsigned int>min(self.now_us - start_us, LARGEST)
        cdef unsigned int size_bytes = <unsigned int>min(size, LARGEST)
        # A latency beyond 32 bits is cut: the record gives the right end of the delivery, and a start that is too late.
        self._write(level, Slot(
            self.now_us - took_us, took_us, size_bytes, incoming, outgoing, 1, DELIVERY, <unsigned char>outcome, part, 0
        ))  # fmt: skip

    cdef int write_untaken(self, unsigned char level, unsigned int incoming, size_t size, size_t outcome) except -1:
        """Record a delivery that went to no taker (outgoing link), unless ``level`` is OFF.

        The time that the delivery waited is unknown, and recorded as 0.
        """
        if level:
            self.write(level, self.now_us, size, incoming, 0, outcome, WHOLE_WAY)
        return 0

    cdef void write_message(
        self, unsigned char level, unsigned char kind, unsigned long long start_us, unsigned int took_us, size_t size,
        unsigned int queue,
    ) noexcept:  # fmt: skip
        """Record that a message entered or left ``queue``, as ``kind``, a code of `ring_format.KINDS`, says."""
        self._write(level, Slot(start_us, took_us, <unsigned int>min(size, LARGEST), queue, 0, 1, kind, 0, 0, 0))

    cdef void _write(self, unsigned char level, Slot slot) noexcept:
        if not self.capacity:
            return  # The ring was closed after the delivery had begun: nothing is recorded.
        if level == FULL:
            if self._has_room():
                self._put(slot)
                self._publish()
        elif not self._count(slot):
            self._put_traffic()
            self._count(slot)

    cdef bint _count(self, Slot slot) noexcept:
        return self.traffic.add(
            slot.incoming, slot.outgoing, slot.took_us, slot.size_bytes, slot.outcome, slot.part, slot.kind
        )

    cdef void _put_traffic(self) noexcept:
        """Write the sums of the current second's deliveries and messages to the ring, and start new sums at 0.

        A sum without room in the ring is lost, and counted as dropped.
        """
        cdef unsigned int number
        cdef Alike alike
        cdef unsigned long long end_us = (self.now_us // SECOND_US + 1) * SECOND_US
        for number in range(self.traffic.used):
            if number % SUMS_AT_ONCE == 0:
                self._publish()
            alike = self.traffic.at(number)
            if self._has_room():
                self._put(Slot(
                    end_us if alike.kind == DELIVERY else end_us - alike.took_us, alike.took_us, alike.size_bytes,
                    alike.incoming, alike.outgoing, alike.count, TRAFFIC if alike.kind == DELIVERY else alike.kind,
                    alike.outcome, alike.part, 0,
                ))  # fmt: skip
        self.traffic.clear()
        self._publish()

    # The ring
    cdef bint _has_room(self) noexcept:
        """Say whether the ring has a free slot besides the slots kept for the record of the node's end.

        If not, count a dropped record.
        """
        if self._fits(1):
            return True
        self._drop()
        return False

    cdef bint _fits(self, size_t count) noexcept:
        return _has_free(self, count + LAST_SLOTS)

    def has_free(self, size_t count):
        """Say whether the ring has ``count`` free slots; False without a ring."""
        return self.capacity > 0 and _has_free(self, count)

    cdef void _drop(self) noexcept:
        self.dropped += 1
        store_now(self.header + DROPPED_AT, self.dropped)

    cdef void _put(self, Slot slot) noexcept:
        self.slots[self.next] = slot
        self.next = self.next + 1 if self.next + 1 < self.capacity else 0
        self.written += 1

    cdef void _publish(self) noexcept:
        """Make all slots written so far visible to the writer process, by the count of slots in the ring's header.

        The count is stored after the slots, so the writer never reads a slot that is not complete.
        """
        store_now(self.header + WRITTEN_AT, self.written)

    # Records with text
    def tell(self, dict row):
        """Write ``row`` to the ring as a record with text; return False, and count a drop, if the ring has no room now.

        Without a ring, return True. A row longer than the whole ring counts as a drop, and the result is True, since
        another try would gain nothing.
        """
        return self._tell(row, False)

    def tell_late(self, dict row):
        """Write the pending ``row`` as `tell` does, but count no drop if the ring has no room now: callers try again.

        A row longer than the whole ring is dropped and counted, as `tell` does.
        """
        return self._tell(row, True)

    cdef bint _tell(self, dict row, bint is_late) except? True:
        if not self.capacity:
            return True
        cdef bytes text = _text_of(row)
        cdef size_t count = _slots_of(text)
        cdef bint is_too_long = count > _most_at_once(self)
        if is_too_long or not self._fits(count):
            # A row longer than the whole ring never fits: it counts as a drop, and True as the result keeps callers
            # from trying again.
            if not is_late or is_too_long:
                self._drop()
            return is_too_long
        _put_text(self, text)
        return True

    def tell_last(self, dict row):
        """Write ``row``, which says that the node ended, as the last record, in the slots reserved for this record.

        If even these slots do not suffice, count a drop, and return False; else return True, also without a ring.
        """
        cdef bytes text = _text_of(row)
        if not self.capacity:
            return True
        if not _has_free(self, _slots_of(text)):
            self._drop()
            return False
        _put_text(self, text)
        return True

    # News about the node's ends of links (inlets and takers of a router) and queues, kept until state records are made.
    cdef int note(self, object end, bint is_there, object error) except -1:
        """Keep for `take_changes` that ``end``, an end of a link or a queue, is new (``is_there``) or gone.

        ``error`` is the error with which a link ended, or None. Without a ring, keep nothing.
        """
        if self.capacity:
            self.changes.append((end, is_there, error))
        return 0

    cdef int note_restless(self, object end) except -1:
        """Keep for `take_restless` that ``end``, an end of a link or a queue, has news such as a credit of 0.

        Callers note an end once until `take_restless` returns the end.
        """
        if self.capacity:
            self.restless.append(end)
        return 0

    cdef int note_moved(self, object end) except -1:
        """Keep for `take_moved` that a delivery moved over the link of ``end``.

        Callers note an end once until `take_moved` returns the end.
        """
        if self.capacity:
            self.moved.append(end)
        return 0

    def take_moved(self, Py_ssize_t most):
        """Remove and return the first ends of links that `note_moved` kept: ``most``, or a tenth if that is more.

        In each second nearly all links move deliveries. Without the tenth, links that come and go would make the list
        grow forever.
        """
        most = max(most, len(self.moved) // 10)
        found = self.moved[:most]
        del self.moved[:most]
        return found

    def take_restless(self):
        """Remove and return the ends of links, and queues, that `note_restless` kept.

        Their news are credit that ran out or came back, drains, copies that a consumer missed, or the depth of a queue.
        """
        found, self.restless = self.restless, []
        return found

    @property
    def has_changes(self):
        return bool(self.changes)

    def take_changes(self):
        """Remove and return (end or queue, is there, error) for each end of a link, or queue, that is new or gone."""
        found, self.changes = self.changes, []
        return found

    # Levels and numbers
    def level_of(self, name):
        """Return the code of the record level ``name``; for None, the code of the recorder's own level.

        Without a ring, return OFF, so that nothing is recorded.
        """
        if name is None:
            return self.level
        return RECORD_LEVELS[name] if self.capacity else OFF

    cdef unsigned int next_number(self) noexcept:
        """Return a number for a new end of a link, or a new queue, of the node; each call returns another number."""
        self.last_number += 1
        return self.last_number

    # Time
    def set_now(self, double now_s):
        """Set the recorder's time, in seconds, to the time of the input at hand.

        If a new second begins, first write the sums of the second before to the ring.
        """
        cdef unsigned long long now_us = <unsigned long long>(now_s * 1e6)
        if self.capacity and self.traffic.used and now_us // SECOND_US != self.now_us // SECOND_US:
            self._put_traffic()
        self.now_us = now_us

    def wall_s(self, unsigned long long at_us):
        """Return the time ``at_us`` of the recorder's clock as seconds of UTC."""
        return at_us / 1e6 + self.wall_offset_ms / 1e3

    def set_wall_offset(self, double offset_s):
        """Set by how many seconds the wall clock is ahead of the monotonic clock, once at the node's start.

        The offset stays, so that no later change of the wall clock can expire or revive messages.
        """
        self.wall_offset_ms = <long long>(offset_s * 1000)

    def set_clock(self, long long ahead_us, unsigned long long now_us):
        """Write to the ring's header how far UTC is ahead of the monotonic clock, and the monotonic clock, in us."""
        if self.capacity:
            store_now(self.header + CLOCK_AT, <unsigned long long>ahead_us)
            store_now(self.header + BEAT_AT, now_us)

    def end_second(self):
        """Write the sums of the current second's deliveries and messages to the ring now, and start new sums at 0."""
        if self.capacity and self.traffic.used:
            self._put_traffic()


cdef size_t _most_at_once(Recorder here) noexcept:
    """Return the most slots that one record may have: all but the last slots, or where the node overwrites the oldest
    records, fewer than readers allow for.
    """
    if load_now(here.header + OVERWRITES_AT):
        return here.capacity / AHEAD_PART - 1
    return here.capacity - LAST_SLOTS


cdef bint _has_free(Recorder here, size_t count) noexcept:
    """Say whether the ring has ``count`` free slots, among them the slots reserved for the record of the node's end."""
    if here.written + count - here.taken <= here.capacity:
        return True
    if load_now(here.header + OVERWRITES_AT):
        # Nobody takes records out: those in the older half of the ring count as taken, and are overwritten.
        here.taken = here.written - here.capacity / 2
    else:
        here.taken = load_now(here.header + TAKEN_AT)
    return here.written + count - here.taken <= here.capacity


_encode = json.JSONEncoder(separators=(",", ":")).encode
_quote = json.encoder.encode_basestring_ascii


# For each name of a column that was written, the text before a value of the column: `,"name":`.
cdef dict _HEADS = {}


cdef bytes _text_of(dict row):
    """Return ``row`` as JSON, exactly as `json.dumps` without spaces would write it, in a third of the time."""
    cdef list parts = []
    for name, value in row.items():
        head = _HEADS.get(name)
        if head is None:
            head = _HEADS[name] = "," + _quote(name) + ":"
        parts.append(head)
        if isinstance(value, str):
            parts.append(_quote(value))
        elif type(value) is int:
            parts.append(str(value))
        else:
            parts.append(_encode(value))
    cdef str text = "".join(parts)
    return ("{" + text[1:] + "}").encode()


cdef size_t _slots_of(bytes text) noexcept:
    return 1 + (PyBytes_GET_SIZE(text) + sizeof(Slot) - 1) // sizeof(Slot)


cdef int _put_text(Recorder here, bytes text) except -1:
    cdef Slot piece
    cdef Py_ssize_t start, size = PyBytes_GET_SIZE(text)
    here._put(Slot(here.now_us, 0, <unsigned int>size, 0, 0, 1, TEXT, 0, 0, 0))
    for start in range(0, size, sizeof(Slot)):
        piece = Slot(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        memcpy(&piece, PyBytes_AS_STRING(text) + start, min(sizeof(Slot), <size_t>(size - start)))
        here._put(piece)
    here._publish()
    return 0


cdef size_t outcome_of(pn_delivery_t *incoming) noexcept:
    """Return the code of the outcome that this node gave the sender of ``incoming``; ABORTED if the sender aborted."""
    return ABORTED if pn.delivery_aborted(incoming) else pn.delivery_local_state(incoming)
