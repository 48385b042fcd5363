from broker.commit cimport Commits
from broker.message cimport Entry, Message
from broker.queue cimport LEVELS, Queue
from broker.shelf cimport Shelf
from wire.core cimport DeliveryOwner


cdef class Taker(DeliveryOwner):
    """An outgoing link that takes from a queue."""

    cdef readonly long consumer_id

    cdef int take(self, Entry entry) except -1
    cdef int pump(self, double now) except -1


cdef class Producer(DeliveryOwner):
    """An incoming link that puts into a queue."""

    cdef int on_room_in_queue(self) except -1


cdef class HeldQueue:
    cdef readonly str address
    cdef readonly Queue queue
    cdef readonly object row
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
    cdef dict held_back
    cdef readonly bint is_deleted
    # Messages that are on their way to the disk for it; those among them that lie in other queues already.
    cdef object queue_id

    cdef bint is_written_now(self) noexcept
    cdef bint is_over_limit(self) noexcept
    cdef bint has_room_for(self, size_t size_bytes) noexcept
    cdef long long room(self) noexcept


cdef class Stock:
    cdef Commits commits
    cdef Shelf shelf
    cdef double wall_offset_s
    cdef object policy_of
    cdef public double now
    cdef dict to_pump
    cdef dict with_room
    cdef dict queues
    cdef object subscriptions
    cdef dict subscribers
    cdef dict every
    cdef list due
    cdef object dropping
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
    cdef int _drop_some(self) except -1
    cdef int discard_large(self, long long message_id) except -1
    cdef int release(self, Message message) except -1
    cdef int carry_out(self, HeldQueue held, list actions) except -1
    cdef int _leave(self, HeldQueue held, Entry entry, object departure) except -1
    cdef int _forget(self, HeldQueue held, Entry entry) except -1
    cdef int move(self, HeldQueue held, Entry entry, HeldQueue target, object cause) except -1
    cdef object cause_of(self, HeldQueue held, Entry entry, object reason)
    cdef int _go_to(self, HeldQueue target, Message message, object cause) except -1
    cdef int _arrive(self, HeldQueue target, Message message, object cause, double now) except -1
    cdef int _shed(self, HeldQueue held) except -1
    cdef int _write(self, Message message, bytes body, list targets) except -1
    cdef int _raise_mark(self, HeldQueue held, int priority, long long message_id) except -1
    cdef int _enqueue(self, HeldQueue held, Message message, double now, unsigned int delivery_count=*,
                       object cause=*) except -1
    cdef int _await_deadline(self, HeldQueue held, double deadline_s) except -1
