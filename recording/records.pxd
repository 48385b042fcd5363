from cpython.buffer cimport Py_buffer

from wire.proton cimport pn_delivery_t
from recording.decisions cimport Decisions
from recording.traffic cimport TrafficSums


cdef enum:
    # Codes in the place of an outcome, for deliveries that ended without an outcome.
    ABORTED = 1
    SENDER_LOST = 2


cdef enum:
    # Part of a delivery's way through the node that a record covers: the whole way, a multicast's arrival, one copy.
    WHOLE_WAY = 0
    MANY_COPIES = 1
    ONE_COPY = 2


cdef enum:
    # Record level of an address: no records, sums of each second, or every delivery.
    OFF = 0
    SUMMARY = 1
    FULL = 2


ctypedef packed struct Slot:
    unsigned long long start_us
    unsigned int took_us
    unsigned int size_bytes
    unsigned int incoming
    unsigned int outgoing
    unsigned int count
    unsigned char kind
    unsigned char outcome
    unsigned char part
    unsigned char reserved


cdef class Recorder:
    cdef Py_buffer buffer
    cdef bint has_buffer
    cdef unsigned char *header
    cdef Slot *slots
    cdef readonly size_t capacity
    cdef readonly unsigned char level
    cdef readonly unsigned long long written
    cdef readonly unsigned long long dropped
    # Number of slots that the writer had taken when last read from the ring: read again only when the ring seems full.
    cdef unsigned long long taken
    cdef size_t next  # written % capacity, kept up to date, since a division costs more than all else in a record
    cdef unsigned long long now_us
    # The node's wall clock minus its monotonic clock, taken at the node's start.
    cdef long long wall_offset_ms
    cdef unsigned int last_number
    cdef TrafficSums traffic
    # The decision record of a router.
    cdef readonly Decisions decisions
    # Ends of links, and queues, for state records: (end, is there, error) for an end that came or went; ends with other
    # news, such as credit that ran out; ends that moved deliveries.
    cdef list changes
    cdef list restless
    cdef list moved

    cdef void write(
        self, unsigned char level, unsigned long long start_us, size_t size, unsigned int incoming,
        unsigned int outgoing, size_t outcome, unsigned char part,
    ) noexcept  # fmt: skip
    cdef int write_untaken(self, unsigned char level, unsigned int incoming, size_t size, size_t outcome) except -1
    cdef void write_message(
        self, unsigned char level, unsigned char kind, unsigned long long start_us, unsigned int took_us, size_t size,
        unsigned int queue,
    ) noexcept  # fmt: skip
    cdef void _write(self, unsigned char level, Slot slot) noexcept
    cdef bint _count(self, Slot slot) noexcept
    cdef bint _has_room(self) noexcept
    cdef bint _fits(self, size_t count) noexcept
    cdef void _drop(self) noexcept
    cdef bint _tell(self, dict row, bint is_late) except? True
    cdef void _put(self, Slot slot) noexcept
    cdef void _publish(self) noexcept
    cdef void _put_traffic(self) noexcept
    cdef int note_restless(self, object end) except -1
    cdef int note_moved(self, object end) except -1
    cdef int note(self, object end, bint is_there, object error) except -1
    cdef unsigned int next_number(self) noexcept


cdef size_t outcome_of(pn_delivery_t *incoming) noexcept
