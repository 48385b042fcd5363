from broker.queueing.commit cimport Commits
from broker.links.second_settlement cimport SecondSettlement
from broker.queueing.message cimport QueuedMessage
from broker.queueing.body_cache cimport BodyCache
from broker.queueing.held_queue cimport HeldQueue, LateMessage, QueueProducer
from broker.queueing.message_store cimport MessageStore
from wire.core cimport IncomingCore
from wire.drought cimport Drought
from wire.proton cimport pn_delivery_t
from wire.sections cimport Head


cdef class BrokerReceiver(QueueProducer)
cdef class _Late(LateMessage):
    cdef BrokerReceiver receiving
    cdef pn_delivery_t *delivery
    cdef HeldQueue held
    cdef QueuedMessage message
    # None: large.
    cdef bytes body



cdef class ProducerGate:
    cdef Commits commits
    cdef BodyCache body_cache
    cdef dict waiting
    cdef dict waiting_for_room
    cdef bint is_disk_low
    # The bytes of all late messages that are in memory.
    cdef long long late_bytes

    cdef bint is_shut_now(self) noexcept
    cdef bint is_short_of_memory_now(self) noexcept
    cdef bint holds_back(self, BrokerReceiver receiving) except? True
    cdef int forget(self, BrokerReceiver receiving) except -1


cdef class BrokerReceiver(QueueProducer):
    cdef readonly IncomingCore link
    # The address of the link's target; None: each message names its address.
    cdef readonly str address
    cdef list queues
    cdef HeldQueue limited
    cdef object targets
    # Returns the BrokerAddress of an address as text, or None.
    cdef object resolve
    # The address of the topic to which the link sends, in UTF-8: ``published`` for delivery annotations, ``fill`` for an
    # empty `to` if the topology says so. None for a queue, and for a link without an address.
    cdef bytes published
    cdef bytes fill
    cdef object fail
    cdef MessageStore message_store
    cdef Commits commits
    cdef ProducerGate gate
    # Set if the producer asked for rcv-settle-mode second, so that the broker settles after the producer; else None.
    cdef SecondSettlement last_word
    # The late messages of this link by the pointers of their deliveries; None if messages to full queues are rejected.
    cdef dict late
    cdef long credit_count
    cdef long room
    cdef long link_credit
    cdef bint is_over
    cdef bint is_for_disk
    # The delivery that is arriving. Once it counts as large, its pieces go to the store and only the size stays here.
    cdef list pieces
    cdef long long large_id
    cdef size_t size_bytes
    cdef object refusal
    cdef double ttl_s
    cdef double expires_at_s
    cdef int priority
    # The address of each message, in bytes: of the link's target, else of the message itself.
    cdef bytes target
    cdef bytes to
    # For the link log: the record level, the time without credit and its reason, and whether a change of either, or of
    # the deliveries, is not recorded yet.
    cdef readonly unsigned char record_level
    cdef Drought drought
    cdef str waited_for
    cdef bint is_restless
    cdef bint has_moved
    # Pre-settled messages refused since the last record, a dict of counts by cause; None while there are none.
    cdef dict lost

    cdef int go_on(self) except -1
    cdef int _read(self, pn_delivery_t *delivery) except -1
    cdef int _become_large(self) except -1
    cdef int _store_piece(self, bytes piece) except -1
    cdef int _forget_arriving(self) except -1
    cdef int _drop_arriving(self) except -1
    cdef int _scan(self, bytes data, bint has_more) except -1
    cdef int _on_complete(self, pn_delivery_t *delivery) except -1
    cdef bytes _body(self)
    cdef list _targets_now(self)
    cdef bytes _for_subscriptions(self, bytes body, list targets)
    cdef bytes _for_any_subscription(self, bytes start)
    cdef bytes _published_now(self)
    cdef int _accept(self, pn_delivery_t *delivery, bytes body, list targets) except -1
    cdef QueuedMessage _message(self, list targets)
    cdef int _on_written(self, pn_delivery_t *delivery, QueuedMessage message, list targets, double now) except -1
    cpdef int settle_accepted(self, size_t delivery) except -1
    cdef int _settle(self, pn_delivery_t *delivery) except -1
    cdef int _spend(self) except -1
    cdef bint _is_late(self, pn_delivery_t *delivery, list targets) except -1
    cdef int _keep_late(self, pn_delivery_t *delivery, bytes body, list targets) except -1
    cdef int _forget_late(self, _Late late) except -1
    cdef int _discard(self, _Late late) except -1
    cdef int _take_out(self, _Late late) except -1
    cdef int _give_back(self, _Late late) except -1
    cdef bint _enter(self, _Late late) except -1
    cdef int on_let_in(self) except -1
    cdef int _refuse_when_full(self, HeldQueue held) except -1
    cdef long _grantable(self) except -1
    cdef int _top_up(self) except -1
    cdef int _grant(self) except -1
    cdef int _note_credit(self) except -1
    cdef int _note_lost(self, str condition) except -1
    cdef str _obstacle(self)
