"""What became of each delivery, and how long it took: a fixed-size record at its settlement, in a ring in memory.

The hook for the link logs: whoever empties the ring decides where the records go. What is not taken in time is
overwritten, and counted. Times are microseconds of the monotonic clock, read once for each batch of input.

    start_us (8) | took_us (4) | size_bytes (4) | incoming (4) | outgoing (4) | outcome (1) | part (1) | 0 (2)    28 bytes

``incoming`` and ``outgoing`` are numbers of links, 0 for none: nobody had it, or a message of a sender without an address
had none itself. ``outcome`` is the state's descriptor code [3.4]; 0 for none, 1 when its sender aborted it, 2 when its
sender was lost before it was settled.

``part`` 0: the whole way from the incoming link to the taker that had it last. A multicast leaves 1 for what its sender
sent, and 2 for each copy with the copy's own outcome. So parts 0 and 1 are what came in, 0 and 2 what went out. What
nobody had looked at when its sender was lost leaves none.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport calloc, free

from wire.proton cimport pn

RECORD_BYTES = sizeof(Record)


cdef class Recorder:
    """``capacity`` records; 0 records nothing."""

    def __cinit__(self, size_t capacity):
        self.capacity = capacity
        if capacity:
            self.ring = <Record *>calloc(capacity, sizeof(Record))
            if self.ring is NULL:
                raise MemoryError(f"no room for {capacity} records")

    def __dealloc__(self):
        free(self.ring)

    cdef void write(
        self, unsigned long long start_us, size_t size, unsigned int incoming, unsigned int outgoing, size_t outcome,
        unsigned char part,
    ) noexcept:  # fmt: skip
        cdef Record *record
        if not self.capacity:
            return
        record = &self.ring[self.next]
        self.next = self.next + 1 if self.next + 1 < self.capacity else 0
        record.start_us = start_us
        record.took_us = <unsigned int>min(self.now_us - start_us, 0xFFFFFFFFu)
        record.size_bytes = <unsigned int>min(size, 0xFFFFFFFFu)
        record.incoming = incoming
        record.outgoing = outgoing
        record.outcome = <unsigned char>outcome
        record.part = part
        self.written += 1

    @property
    def lost_count(self):
        """Records that were overwritten before anybody took them."""
        return max(0, self.written - self.taken - self.capacity) if self.written > self.taken + self.capacity else 0

    def take(self):
        """The records since the last time, oldest first, as bytes."""
        cdef size_t first = max(self.taken, self.written - self.capacity if self.written > self.capacity else 0)
        pieces = []
        while first < self.written:
            count = min(self.written - first, self.capacity - first % self.capacity)
            pieces.append(
                PyBytes_FromStringAndSize(<char *>&self.ring[first % self.capacity], count * sizeof(Record))
            )
            first += count
        self.taken = self.written
        return b"".join(pieces)


cdef Recorder recorder = Recorder(0)


cdef size_t outcome_of(pn_delivery_t *incoming) noexcept:
    """What its sender was told, or did."""
    return ABORTED if pn.delivery_aborted(incoming) else pn.delivery_local_state(incoming)


cdef int record_untaken(unsigned int incoming, size_t size, size_t outcome) except -1:
    """Of a delivery that no taker had: how long it waited is not known."""
    recorder.write(recorder.now_us, size, incoming, 0, outcome, WHOLE_WAY)
    return 0


def record(size_t capacity):
    """Record from now on, in this process, with room for ``capacity`` records; 0 ends it. Returns the recorder."""
    global recorder
    recorder = Recorder(capacity)
    return recorder


def set_now(double now_s):
    """The time of the input that is looked at now, in seconds."""
    recorder.now_us = <unsigned long long>(now_s * 1e6)
