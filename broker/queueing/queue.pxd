from broker.queueing.action cimport Archive, Deliver
from broker.queueing.browser cimport Browser
from broker.queueing.deadlines cimport Deadlines
from broker.queueing.delivery_order cimport DeliveryOrder
from broker.queueing.message cimport QueueEntry, QueuedMessage
from broker.queueing.packed cimport Pack


cdef enum:
    LEVELS = 10


cdef class QueueConsumer:
    cdef long consumer_id
    cdef long credit
    # Size of the largest message that the consumer takes, in bytes; 0: no limit.
    cdef size_t most_bytes
    cdef dict acquired

    cdef bint is_too_small_for(self, QueueEntry entry) noexcept


cdef class Cursor:
    cdef int priority
    cdef long long after
    cdef readonly long looks
    cdef readonly bint is_done

    cdef bint has_passed(self, QueueEntry entry) noexcept
    cdef int pass_by(self, QueueEntry entry) except -1


cdef class Queue:
    cdef bint is_durable
    cdef unsigned int max_delivery_attempts
    cdef DeliveryOrder line
    cdef set unreadable
    cdef long long unreadable_bytes
    cdef dict consumers
    cdef dict ready
    cdef dict browsers
    # Number of consumers that have a limit on message size.
    cdef readonly long choosy_count
    # A message waits that every attached consumer may be too small for: each consumer's link has to check then.
    cdef bint has_passed_over
    cdef Deadlines deadlines
    # Archived entries that the delivery order may still have, since the last sweep.
    cdef long long archived_count
    # Positions begin at ``first_position``.
    cdef long long first_position
    cdef long long next_position
    cdef long long available_count
    cdef long long acquired_count
    cdef long long size_bytes
    cdef long long marks[LEVELS]
    cdef long long wanted_marks[LEVELS]
    cdef dict departed

    cpdef list enqueue(self, QueuedMessage message, double now, unsigned int delivery_count=*, object cause=*)
    cpdef list settle(self, long consumer_id, QueueEntry entry, object verdict, double now, bint shun=*)
    cpdef list on_mark(self, int priority, long long message_id, double now)
    cdef int restore(self, long long message_id, size_t size_bytes, int priority, double deadline_s,
                     unsigned int delivery_count) except -1
    cdef int end_restoring(self) except -1
    cdef list beyond(self, long long position, Py_ssize_t count, list opened)
    cpdef list drop_some(self, long count)
    cpdef list shed(self)
    cpdef list set_aside(self, long consumer_id, QueueEntry entry, double now)
    cpdef list drop_unreadable(self, object departure, long long before=*)
    cpdef list take_available(self, long limit, long long before, object departure, double now, object wants=*,
                              bint are_packed=*, Cursor cursor=*)
    cpdef list take_at(self, list positions, object departure, double now, object wants=*)
    cpdef list detach(self, long consumer_id, object unwritten, double now, bint is_orderly=*)
    cpdef list set_credit(self, long consumer_id, long credit, double now)
    cpdef bint is_dry_for(self, long consumer_id, double now) except -1
    cpdef size_t refused_by(self, long consumer_id, double now) except? 0
    cdef bint _has_roomier(self, QueueConsumer consumer) noexcept
    cdef list _next_to_go(self)
    cdef bint is_hungry_now(self) noexcept
    cdef long long count_now(self) noexcept
    cdef long long limited_count(self) noexcept
    cdef long long limited_bytes(self) noexcept
    cdef double deadline_now(self) except? -1
    cpdef list on_time(self, double now)

    cdef int _conclude(self, QueueEntry entry, object verdict, double now, list actions) except -1
    cdef Archive _archive(self, QueueEntry entry, object departure)
    cdef Archive _archive_unreadable(self, QueueEntry entry, object departure)
    cdef int _dispatch(self, double now, list actions) except -1
    cdef int _give_what_waits(self, double now, list actions) except -1
    cdef long _take_from(self, Pack pack, long limit, long long before, object departure, double now, object wants,
                         list actions, Cursor cursor) except? -1
    cdef bint _take_if(self, QueueEntry entry, long long before, object departure, double now, object wants,
                       list actions) except -1
    cdef int _archive_there(self, QueueEntry entry, object departure, list actions) except -1
    cdef int _drop_front(self) except -1
    cdef int _sweep(self) except -1
    cdef int _pack(self, int priority) except -1
    cdef int _await_packs(self) except -1
    cdef int _await_spent(self) except -1
    cdef int _expire_in(self, Pack pack, double now, list actions) except -1
    cdef QueueEntry _pop(self)
    cdef QueueEntry _pop_front(self, double now, list actions)
    cdef QueueConsumer _choose(self, QueueEntry entry)
    cdef Deliver _give(self, QueueEntry entry, QueueConsumer consumer)
    cdef bint _is_unmarked(self, QueueEntry entry) noexcept
    cdef int _want_mark(self, QueueEntry entry, list actions) except -1
    cdef int _browse(self, Browser browser, double now, list actions) except -1
