from broker.commit cimport Commits
from broker.message cimport Entry, Message
from broker.queue cimport Queue
from broker.shelf cimport Shelf
from wire.core cimport DeliveryOwner


cdef class Taker(DeliveryOwner):
    """An outgoing link that takes from a queue."""

    cdef readonly long consumer_id

    cdef int take(self, Entry entry) except -1
    cdef int pump(self, double now) except -1


cdef class HeldQueue:
    cdef readonly str address
    cdef readonly Queue queue
    cdef readonly object row
    cdef readonly object key
    cdef readonly bint is_subscription
    cdef readonly bint is_probe
    cdef dict consumers
    cdef public long producer_count
    cdef double due_s
    cdef long long written_mark
    cdef readonly bint is_deleted
    # Messages that are on their way to the disk for it; those among them that lie in other queues already.
    cdef public long coming_count
    cdef set moving_ids
    cdef object queue_id

    cdef bint is_written_now(self) noexcept


cdef class Stock:
    cdef Commits commits
    cdef Shelf shelf
    cdef double wall_offset_s
    cdef public double now
    cdef dict to_pump
    cdef dict queues
    cdef object subscriptions
    cdef dict subscribers
    cdef dict every
    cdef list due
    cdef long long next_message_id
    cdef long long last_passing_id
    cdef long next_queue_id
    cdef long next_consumer_id
    cdef long long serial

    cdef long long new_message_id(self) noexcept
    cdef long long new_passing_id(self) noexcept
    cdef long new_consumer_id(self) noexcept
    cdef int write(self, Message message, bytes body, list targets) except -1
    cdef int on_written(self, Message message, list targets, double now) except -1
    cdef int discard_large(self, long long message_id) except -1
    cdef int release(self, Message message) except -1
    cdef int carry_out(self, HeldQueue held, list actions) except -1
    cdef int _write(self, Message message, bytes body, list targets) except -1
    cdef int _raise_mark(self, HeldQueue held, long long message_id) except -1
    cdef int _enqueue(self, HeldQueue held, Message message, double now, unsigned int delivery_count=*) except -1
    cdef int _await_deadline(self, HeldQueue held, double deadline_s) except -1
