from broker.queueing.message cimport QueueEntry, QueuedMessage
from broker.queueing.queue cimport LEVELS, Queue
from recording.records cimport Recorder
from wire.core cimport DeliveryOwner


cdef class QueueTaker(DeliveryOwner):
    """An outgoing link at a broker, over which a consumer or browser takes messages from a queue."""

    cdef readonly long consumer_id

    cdef int take(self, QueueEntry entry) except -1
    cdef int pump(self, double now) except -1


cdef class QueueProducer(DeliveryOwner):
    """An incoming link at a broker, over which a producer puts messages into a queue."""

    # Time since when the producer has no credit, for want of room in the queue; INFINITY while the producer has credit.
    cdef double waiting_since_s

    cdef int on_room_in_queue(self) except -1


cdef class LateMessage:
    """A message that its queue had no room for as it came, not stored: its sender has no outcome yet."""

    cdef bint enter(self) except -1
    cdef int give_back(self) except -1


cdef class HeldQueue:
    # For the link log: the queue's number, which the node never reuses, the record level, and whether a change of the
    # queue's depth is not recorded yet.
    cdef Recorder recorder
    cdef readonly unsigned int number
    cdef readonly unsigned char record_level
    cdef bint is_restless
    cdef readonly str address
    cdef readonly Queue queue
    cdef public object row
    cdef public object owner
    cdef readonly object key
    cdef readonly bint is_subscription
    cdef readonly object filter_set
    # Whether this is a subscription with wildcards, so that its consumers have to be told the address of each message.
    cdef readonly bint has_wildcards
    cdef readonly bint is_probe
    cdef dict consumers
    cdef public long producer_count
    cdef public long taker_count
    # Time from which the next use of a queue that a client made has to be noted (`ClientQueues`); else INFINITY.
    cdef public double use_due_s
    cdef double due_s
    cdef long long written_marks[LEVELS]
    cdef readonly object policy
    cdef readonly bint is_limited
    # True if the queue holds its producers back while it is full.
    cdef readonly bint blocks
    # The late messages of the queue, in order, as a dict from each to None; None until the first.
    cdef dict late
    cdef long long max_messages
    cdef long long max_bytes
    cdef set moved
    # Messages received but not in the queue yet, since they wait for the disk, and their bytes; credit of the
    # producers; bytes of the largest message seen.
    cdef long long arriving_count
    cdef long long arriving_bytes
    cdef long long promised
    cdef long long largest_bytes
    # Bytes of this queue's bodies that no store has; other queues may have the same bodies.
    cdef long long passing_bytes
    cdef dict held_back
    cdef readonly bint is_deleted
    # Number of the queue in the store; None for a queue in memory.
    cdef object queue_id

    cdef int note_change(self) except -1
    cdef void count_in(self, QueuedMessage message) noexcept
    cdef void count_out(self, QueuedMessage message) noexcept
    cdef bint is_written_now(self) noexcept
    cdef bint is_over_limit(self) noexcept
    cdef bint has_room_for(self, size_t size_bytes) noexcept
    cdef long long room(self) noexcept
