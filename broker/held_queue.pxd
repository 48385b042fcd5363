from broker.message cimport Entry, Message
from broker.queue cimport LEVELS, Queue
from wire.core cimport DeliveryOwner


cdef class Taker(DeliveryOwner):
    """An outgoing link that takes from a queue."""

    cdef readonly long consumer_id

    cdef int take(self, Entry entry) except -1
    cdef int pump(self, double now) except -1


cdef class Producer(DeliveryOwner):
    """An incoming link that puts into a queue."""

    # It has no credit, for want of room there; INFINITY while it has some.
    cdef double waiting_since_s

    cdef int on_room_in_queue(self) except -1


cdef class HeldQueue:
    # For records: never used again in this process; how much of it there is; to be told of when the second is over.
    cdef readonly unsigned int number
    cdef readonly unsigned char record_level
    cdef bint is_restless
    cdef readonly str address
    cdef readonly Queue queue
    cdef public object row
    cdef public object owner
    cdef readonly object key
    cdef readonly bint is_subscription
    cdef readonly bint is_probe
    cdef dict consumers
    cdef public long producer_count
    cdef public long taker_count
    cdef double due_s
    cdef long long written_marks[LEVELS]
    cdef readonly object policy
    cdef readonly bint is_limited
    cdef long long max_messages
    cdef long long max_bytes
    cdef set moved
    # What is accepted, and not in the queue yet; and what its producers may still send.
    cdef long long arriving_count
    cdef long long arriving_bytes
    cdef long long promised
    cdef long long largest_bytes
    # Of bodies that lie in memory alone, for this one and perhaps for others.
    cdef long long passing_bytes
    cdef dict held_back
    cdef readonly bint is_deleted
    # Messages that are on their way to the disk for it; those among them that lie in other queues already.
    cdef object queue_id

    cdef int note_change(self) except -1
    cdef void count_in(self, Message message) noexcept
    cdef void count_out(self, Message message) noexcept
    cdef bint is_written_now(self) noexcept
    cdef bint is_over_limit(self) noexcept
    cdef bint has_room_for(self, size_t size_bytes) noexcept
    cdef long long room(self) noexcept
