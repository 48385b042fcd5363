from broker.queueing.commit cimport Commits
from broker.queueing.message cimport QueueEntry
from broker.queueing.body_cache cimport Fetch, BodyCache
from broker.queueing.held_queue cimport HeldQueue, QueueTaker
from broker.queueing.message_store cimport MessageStore
from wire.core cimport OutgoingCore
from wire.proton cimport pn_delivery_t


cdef class OutgoingEntry:
    cdef QueueEntry entry
    cdef list pieces
    cdef size_t at
    cdef size_t ready_bytes
    cdef size_t fetched_bytes
    # Bytes by which the message written is longer than the stored message, since its sections before the body have its
    # history at this broker: delivery-count, cause of a move, annotations of consumers.
    cdef Py_ssize_t added_bytes
    cdef bint is_fetching
    # Whether the consumer gets an addressed message as it was published, since the subscription is to an exact address.
    cdef bint is_exact
    # The first bytes of an addressed body that ends before its delivery annotations do, until more bytes are fetched.
    cdef bytes cut
    # Annotations that consumers added when they returned the message before, encoded; None if there are none.
    cdef bytes annotations

    cdef bint is_fetched(self) noexcept
    cdef int add(self, bytes body) except -1
    cdef int _add_start(self, bytes body) except -1


cdef class BrokerSender(QueueTaker):
    cdef readonly OutgoingCore link
    cdef HeldQueue held
    cdef MessageStore message_store
    cdef BodyCache body_cache
    cdef Commits commits
    cdef bint is_browser
    cdef bint is_exact
    # The peer's limit on message size, 0 for none; the size of a message that exceeded the limit only with its history
    # at this broker added, or 0.
    cdef size_t most_bytes
    cdef size_t refused_bytes
    cdef object on_too_large
    cdef bint is_settled
    cdef long credit_count
    cdef bint is_attached
    cdef bint is_over
    cdef object outbox
    cdef OutgoingEntry current
    cdef pn_delivery_t *delivery
    cdef bint is_current_judged
    cdef dict unsettled
    cdef dict unconfirmed
    cdef unsigned long long next_tag
    # For the link log: the record level, the number of deliveries written, and whether a change is not recorded yet.
    cdef readonly unsigned char record_level
    cdef readonly unsigned long long moved_count
    cdef bint has_moved

    cdef bint _write_next(self, double now) except -1
    cdef int _write_chunk(self, OutgoingEntry parcel) except -1
    cdef int _start(self) except -1
    cdef bint _drop_expired(self, OutgoingEntry parcel, double now) except -1
    cdef int _tell_time_left(self, OutgoingEntry parcel) except -1
    cdef int _finish(self, double now) except -1
    cdef int _fetch(self, OutgoingEntry parcel) except -1
    cdef int _give_up(self, OutgoingEntry parcel, double now) except -1
    cdef int _tell_credit(self, double now) except -1
    cdef bint _is_too_large(self, OutgoingEntry parcel) noexcept
    cdef int _refuse(self, OutgoingEntry parcel, double now) except -1
    cdef int _tell_if_too_large(self, double now) except -1
    cdef int _give_back(self, long count, double now) except -1
    cdef bint _is_dry(self, double now) except -1
    cdef int _judge(self, pn_delivery_t *delivery, double now) except -1
    cdef int _conclude(self, QueueEntry entry, object verdict, bint shun, double now) except -1
    cdef int _note_move(self) except -1
    cdef int _confirm(self, pn_delivery_t *delivery) except -1
    cdef int _settle_synced(self, pn_delivery_t *delivery, unsigned long long serial) except -1
