"""What became of each delivery, and how long it took: a fixed-size record at its settlement, in a ring in memory.

The hook for the link logs: whoever empties the ring decides where the records go. What is not taken in time is
overwritten, and counted. Times are microseconds of the monotonic clock, read once for each batch of input.

    start_us (8) | took_us (4) | size_bytes (4) | incoming (4) | outgoing (4) | outcome (1) | hop (1) | 0 (2)     28 bytes

``incoming`` and ``outgoing`` are numbers of links; ``outcome`` is the state's descriptor code [3.4], 0 for none.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport calloc, free

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
        self, unsigned long long start_us, size_t size, unsigned int incoming, unsigned int outgoing, size_t outcome
    ) noexcept:
        cdef Record *record
        if not self.capacity:
            return
        record = &self.ring[self.written % self.capacity]
        record.start_us = start_us
        record.took_us = <unsigned int>min(self.now_us - start_us, 0xFFFFFFFFu)
        record.size_bytes = <unsigned int>min(size, 0xFFFFFFFFu)
        record.incoming = incoming
        record.outgoing = outgoing
        record.outcome = <unsigned char>outcome
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


def record(size_t capacity):
    """Record from now on, in this process, with room for ``capacity`` records; 0 ends it. Returns the recorder."""
    global recorder
    recorder = Recorder(capacity)
    return recorder


def set_now(double now_s):
    """The time of the input that is looked at now, in seconds."""
    recorder.now_us = <unsigned long long>(now_s * 1e6)
