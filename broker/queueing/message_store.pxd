from broker.queueing.annotations cimport Annotated
from broker.queueing.body_eviction cimport BodyEviction
from broker.queueing.held_queue cimport HeldQueue
from broker.queueing.message cimport QueueEntry, QueuedMessage
from broker.queueing.message_records cimport MessageRecords
from broker.queueing.queues cimport BrokerQueues
from broker.queueing.body_cache cimport BodyCache


cdef class MessageStore(BrokerQueues):
    cdef BodyCache body_cache
    cdef double wall_offset_s
    cdef public double now
    cdef dict to_pump
    cdef dict with_room
    cdef list due
    cdef object dropping
    cdef readonly BodyEviction eviction
    cdef Annotated annotated
    cdef MessageRecords records
    cdef long long next_message_id
    # The id of the first message that came since the broker started.
    cdef long long first_message_id
    # The position of the first message of a queue that is made now.
    cdef long long least_position
    cdef long long last_passing_id
    cdef long next_consumer_id
    cdef long long serial

    cdef long long new_message_id(self) noexcept
    cdef long long new_passing_id(self) noexcept
    cdef long new_consumer_id(self) noexcept
    cdef int write(self, QueuedMessage message, bytes body, list targets) except -1
    cdef int on_written(self, QueuedMessage message, list targets, double now) except -1
    cdef int _drop_some(self) except -1
    cdef int discard_large(self, long long message_id) except -1
    cdef int release(self, QueuedMessage message) except -1
    cdef int carry_out(self, HeldQueue held, list actions) except -1
    cdef int _leave(self, HeldQueue held, QueueEntry entry, object departure) except -1
    cdef int _forget(self, HeldQueue held, QueueEntry entry) except -1
    cdef int move(self, HeldQueue held, QueueEntry entry, HeldQueue target, object cause) except -1
    cdef object cause_of(self, HeldQueue held, QueueEntry entry, object reason)
    cdef int _go_to(self, HeldQueue target, QueuedMessage message, object cause) except -1
    cdef int _arrive(self, HeldQueue target, QueuedMessage message, object cause, double now) except -1
    cdef int _shed(self, HeldQueue held) except -1
    cdef int _make_room(self) except -1
    cdef int _write(self, QueuedMessage message, bytes body, list targets) except -1
    cdef int _raise_mark(self, HeldQueue held, int priority, long long message_id) except -1
    cdef int _enqueue(self, HeldQueue held, QueuedMessage message, double now, unsigned int delivery_count=*,
                      object cause=*) except -1
    cdef int let_in(self, HeldQueue held, QueuedMessage message, double now, unsigned int delivery_count, object cause) except -1
    cdef int _await_deadline(self, HeldQueue held, double deadline_s) except -1
