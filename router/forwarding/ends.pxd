from router.forwarding.copies cimport Copies
from router.forwarding.guard cimport Guard
from wire.core cimport CHUNK_BYTES, DeliveryOwner, IncomingCore, OutgoingCore, Waiter
from wire.proton cimport pn_delivery_t

cdef enum:
    # A delivery that is here to its end, and no larger, goes over links that others share: it can be kept out of their way.
    WHOLE_BYTES = 4 * CHUNK_BYTES


cdef class Group:
    # Sums over its members, kept as they change: deliveries.
    cdef int promised_to_producers
    cdef int promised_to_circuits
    cdef int credit_of_locals
    cdef int credit_of_circuits
    # Raised whenever a taker comes, goes or is about to.
    cdef unsigned int version

    cdef int pump(self, Inlet inlet) except -1
    cdef int on_moved(self, Taker taker) except -1
    cdef int on_credit(self, Taker taker) except -1
    cdef int on_blocked(self, Taker taker) except -1
    cdef int on_returned(self, Inlet inlet) except -1
    cdef int on_sender_flow(self, Inlet inlet) except -1
    cdef bint retry(self, Carrier carrier) except -1
    cdef int on_returned_unread(self, Inlet inlet) except -1
    cdef int on_inlet_room(self, Inlet inlet) except -1


cdef class Carrier(Waiter):
    cdef Inlet inlet
    cdef Taker taker
    cdef pn_delivery_t *incoming
    cdef pn_delivery_t *outgoing
    cdef unsigned long long tie
    cdef Carrier newer_in
    cdef Carrier older_in
    cdef Carrier newer_out
    cdef Carrier older_out

    cdef bint is_far(self) noexcept
    cdef int advance(self) except -1
    cdef int on_taker_disposition(self) except -1
    cdef int on_sender_disposition(self) except -1
    cdef int on_inlet_lost(self) except -1
    cdef int on_taker_lost(self, bint is_unwritten) except -1


cdef class Inlet(DeliveryOwner):
    cdef readonly unsigned int number
    cdef readonly IncomingCore link
    cdef readonly Group group
    cdef Guard guard
    cdef readonly int limit
    cdef int promised_count
    cdef readonly bint is_circuit
    cdef public bint is_draining
    cdef bint is_streaming
    # Circuits, shared and streaming, with deliveries of which it will not hear, each with its barrier (`order`) or None.
    cdef dict unheard
    cdef dict unheard_large
    cdef Carrier moving
    cdef Carrier newest
    # The message at the head, read while it waits to learn its level: still the current one of its link.
    cdef bytes held_head
    cdef int held_level
    # Before those on the link: read out of the engine whole, a deque of (delivery, bytes); None when there is nothing.
    cdef object backlog
    cdef Copies budget
    cdef readonly int unsettled_count
    cdef readonly unsigned long long deliveries_in
    # Credit sharing: deliveries_in when it was last looked at, and when its credit was taken back (-1: it was not).
    cdef long long seen_at
    cdef long long idle_at
    # How many producers it stands for: its share of turns and of scarce credit. `turns` it took of those that are due.
    cdef int weight
    cdef int turns
    # Multicast: its takers, as of this version of the group.
    cdef list audience
    cdef unsigned int audience_version

    cdef int hold(self, Carrier carrier) except -1
    cdef int drop(self, Carrier carrier) except -1
    cdef int set_promised(self, int count) except -1
    cdef bint is_second(self) noexcept
    cdef bint settles_last(self, pn_delivery_t *delivery) noexcept
    cdef bint may_go_on_now(self) except -1
    cdef pn_delivery_t *head_now(self) noexcept
    cdef bytes take_prefix(self)
    cdef int read_ahead(self, Copies budget) except -1
    cdef bytes _leave_backlog(self)
    cdef int leave_head(self) except -1
    cdef bint _has_unread(self) noexcept
    cdef bint _release_current(self) except -1
    cdef int put_back(self, pn_delivery_t *delivery, bytes prefix) except -1
    cdef int head_level(self) except -1
    cdef bint _may_be_read(self, pn_delivery_t *delivery) noexcept
    cdef size_t head_size(self, pn_delivery_t *delivery) except? 0
    cdef bint is_head_partial(self, pn_delivery_t *delivery) noexcept
    cdef int pop(self) except -1
    cdef int drop_head(self) except -1
    cdef int count_in(self) except -1
    cdef int on_unheard(self, Taker taker) except -1
    cdef bint is_discarding(self) noexcept
    cdef bint release_head(self) except -1
    cdef int release_held(self) except -1
    cdef int on_settled(self) except -1
    cdef int top_up(self, int count) except -1
    cdef int reduce(self, int count) except -1
    cdef bint needs_float(self) noexcept
    cdef bint has_queued(self) noexcept
    cdef int hear_weight(self, pn_delivery_t *delivery) noexcept


cdef class Taker(DeliveryOwner):
    cdef readonly unsigned int number
    cdef readonly OutgoingCore link
    cdef readonly Group group
    cdef readonly int cost
    cdef int credit_count
    cdef public bint presettles
    cdef bint is_closing_now
    cdef readonly object upstream
    # The largest that its peer takes; 0: any.
    cdef size_t max_message_bytes
    cdef readonly bint is_stream
    # A link of ours that all inlets use, or a stream beside one: a circuit's, or one to a broker.
    cdef readonly bint is_ours
    # Router id at the other end of an anycast circuit.
    cdef public object egress
    # A branch of another router's tree: the routers it leads to; and whether none of them has a taker any more.
    cdef public object behind
    cdef public bint is_deserted
    # Called before each delivery is started here, when it is not None.
    cdef public object on_start
    # Likewise, before the end of each delivery goes there.
    cdef public object on_finish
    cdef bint is_member
    cdef bint is_stalled
    cdef readonly bint had_credit
    cdef object stall_timer
    cdef readonly unsigned long long copies_missed
    cdef Carrier moving
    cdef Carrier newest
    cdef readonly int unsettled_count
    cdef readonly unsigned long long deliveries_out
    cdef unsigned long long last_tag
    # How many producers are behind what this router sends here.
    cdef int weight
    cdef unsigned long long last_turn

    cdef int hold(self, Carrier carrier) except -1
    cdef int drop(self, Carrier carrier) except -1
    cdef bint _let_go(self, Carrier carrier) except -1
    cdef int set_credit(self, int credit) except -1
    cdef int sync(self) except -1
    cdef pn_delivery_t *start(self) except NULL
    cdef bint can_take_now(self) noexcept
    cdef int join(self) except -1
    cdef int leave(self) except -1


cdef Carrier carrier_at(pn_delivery_t *delivery)
cdef bint is_barrier(pn_delivery_t *delivery) noexcept
cdef int release(Inlet inlet, pn_delivery_t *delivery, size_t size) except -1
