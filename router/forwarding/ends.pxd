from router.forwarding.head cimport InletHead
from wire.core cimport DeliveryOwner, OutgoingCore, Waiter
from wire.drought cimport Drought
from wire.proton cimport pn_delivery_t
from recording.records cimport Recorder

cdef enum:
    # Ways of an inlet's deliveries over parallel links: one link that all share, one that all pre-settled deliveries
    # of a multicast share, and one of the inlet's own for large deliveries.
    SHARED_WAY
    SETTLED_WAY
    LARGE_WAY
    # No more deliveries go to this circuit: a circuit over another path replaced it.
    LEFT_WAY
    # As LEFT_WAY, and nobody waits for the deliveries the circuit has.
    FORSAKEN_WAY


cdef class Group:
    # Sums over the group's members, kept as they change: deliveries.
    cdef int promised_to_producers
    cdef int promised_to_circuits
    cdef int credit_of_locals
    cdef int credit_of_circuits
    # Raised whenever a taker comes, goes or is about to go.
    cdef unsigned int version
    # The node's recorder, and how much it records of the group's deliveries (`recording.records`).
    cdef readonly Recorder recorder
    cdef readonly unsigned char record_level
    # RELEASED from a circuit's sender is for this router alone (`recall`).
    cdef bint takes_recalls
    # Deliveries of the group are in a queue: a consumer that leaves in order gives back those without an outcome.
    cdef bint is_of_queue

    cdef int pump(self, Inlet inlet) except -1
    cdef int on_moved(self, Taker taker) except -1
    cdef int on_credit(self, Taker taker) except -1
    cdef int on_blocked(self, Taker taker) except -1
    cdef int on_taker_room(self, Taker taker) except -1
    cdef int on_returned(self, Inlet inlet) except -1
    cdef int on_sender_flow(self, Inlet inlet) except -1
    cdef bint retry(self, Carrier carrier) except -1
    cdef bint retransmits(self, Inlet inlet) except -1
    cdef bint on_recalled(self, Inlet inlet, Carrier carrier) except -1
    cdef int on_returned_unread(self, Inlet inlet) except -1
    cdef int on_inlet_room(self, Inlet inlet) except -1
    cdef bint take_back(self, Carrier carrier) except -1
    cdef int on_given_back(self, Taker taker) except -1
    cdef int on_too_large(self, Inlet inlet, size_t size) except -1
    cdef int on_undeliverable(self, Inlet inlet) except -1


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
    # The delivery was written to its end, as seen when the engine was about to forget that.
    cdef bint was_written

    cdef bint note_taker(self) except -1
    cdef bint goes_to(self, Taker taker) noexcept
    cdef int advance(self) except -1
    cdef bint read_rest(self) except -1
    cdef bint is_unsent(self) noexcept
    cdef bint may_be_given_back(self) noexcept
    cdef int on_taker_disposition(self) except -1
    cdef int on_sender_disposition(self) except -1
    cdef int on_inlet_lost(self, bint comes_again) except -1
    cdef int on_taker_lost(self, bint is_unwritten) except -1


cdef class Inlet(InletHead):
    cdef readonly Group group
    cdef readonly int limit
    # Average size of the last few deliveries.
    cdef readonly long long usual_bytes
    cdef int promised_count
    cdef readonly bint is_circuit
    # From an edge router, for which this router is the ingress; `shuns`: the edge whose takers it must not feed (0:
    # none).
    cdef public bint is_edge
    cdef public int shuns
    # Router id at the other end of a circuit.
    cdef public object ingress
    # A circuit for large deliveries, beside a shared one.
    cdef public bint is_stream
    cdef public bint is_draining
    # Lost with its link or connection: its deliveries do not go on.
    cdef public bint is_lost
    # The group has this inlet among its inlets.
    cdef bint is_member
    # The ingress recalled the deliveries waiting here: no float until a consumer has credit.
    cdef bint is_resting
    # The way of the last delivery, and whether deliveries may be on other ways.
    cdef int way
    cdef bint has_other_ways
    # Circuits that may not have passed on all of the inlet's deliveries -> the barrier (`order`) or None.
    cdef dict unheard
    # For a router's inlet, the circuits among them with deliveries of which no outcome will tell.
    cdef dict settled_to
    # When the barrier at the head is answered in any case; 0: no barrier.
    cdef double barrier_due_s
    cdef Carrier moving
    cdef Carrier newest
    cdef readonly int unsettled_count
    cdef readonly unsigned long long deliveries_in
    # For records: time without credit of the sender; the inlet is to be looked at when the second is over.
    cdef Drought drought
    cdef bint is_restless
    # For records: deliveries moved since the inlet was looked at.
    cdef bint has_moved
    # Credit sharing: deliveries_in at the last look, and when credit was last taken back (-1: never).
    cdef long long seen_at
    cdef long long idle_at
    # Number of producers behind the inlet: its share of turns and of scarce credit. `turns`: those taken of the
    # present share.
    cdef int weight
    cdef int turns
    # Multicast: the last delivery was pre-settled; the inlet's takers, as of this version of the group.
    cdef bint sends_settled
    cdef list audience
    cdef bint is_audience_settled
    cdef unsigned int audience_version
    # Arrival times of the waiting deliveries, and of the last that left, in microseconds. None: nothing waits.
    cdef object held_since
    cdef unsigned long long came_us
    # Number of fans begun: a delivery that comes back keeps its place.
    cdef unsigned long long begun_count

    cdef int note_held(self) except -1
    cdef int leave_line(self) except -1
    cdef int return_to_line(self, unsigned long long came_us) except -1
    cdef int limit_now(self) noexcept
    cdef int weigh(self, size_t size) except -1
    cdef int hold(self, Carrier carrier) except -1
    cdef int drop(self, Carrier carrier) except -1
    cdef int set_promised(self, int count) except -1
    cdef bint is_second(self) noexcept
    cdef bint may_go_on_now(self) except -1
    cdef bint is_from_client(self) noexcept
    cdef bint is_of_queue(self) noexcept
    cdef int pop(self) except -1
    cdef int drop_head(self) except -1
    cdef int on_unheard(self, Taker taker) except -1
    cdef int on_unheard_settled(self, Taker taker) except -1
    cdef int on_settled(self) except -1
    cdef int note_credit(self) except -1
    cdef int top_up(self, int count) except -1
    cdef int waiting_now(self) noexcept
    cdef int held_now(self) noexcept
    cdef int reduce(self, int count) except -1
    cdef bint needs_float(self) noexcept
    cdef int hear_weight(self, pn_delivery_t *delivery) noexcept
    cdef bint is_from_node(self) noexcept
    cdef bint may_feed(self, Taker taker) noexcept


cdef class Taker(DeliveryOwner):
    cdef readonly unsigned int number
    cdef readonly OutgoingCore link
    cdef readonly Group group
    # The cost of a circuit may change, but not to 0.
    cdef public int cost
    # Number of the connection to the edge router that the taker leads to; 0: none.
    cdef public int edge
    cdef int credit_count
    cdef public bint presettles
    cdef bint is_closing_now
    cdef readonly object upstream
    # The largest message that the peer takes; 0: any.
    cdef size_t max_message_bytes
    cdef readonly bint is_stream
    cdef int way
    # A link of ours: a circuit or a link to a broker, shared by all inlets or a stream beside the shared one.
    cdef readonly bint is_ours
    cdef bint is_broker
    cdef bint wants_outcomes  # pre-settled deliveries go there unsettled, too
    # Router id at the other end of an anycast circuit.
    cdef public object egress
    # The path of a circuit from this router, or the tree of a branch of this router; None for any other taker.
    cdef public object path
    # A branch of ours that gave a delivery back: the branch leads nowhere now, and is to be made anew.
    cdef readonly bint is_spent
    # The peer left in order, by a detach, an end or a close without an error: deliveries without an outcome were not
    # tried.
    cdef bint has_left_in_order
    # A branch of another router's tree: the routers it leads to; and whether none of the routers has a taker any
    # more.
    cdef public object behind
    cdef public bint is_deserted
    # Called before each delivery is started here, if not None.
    cdef public object on_start
    # Called before the end of each delivery goes to this taker, if not None.
    cdef public object on_finish
    cdef bint is_member
    cdef bint is_stalled
    # Multicast: left out of pre-settled deliveries.
    cdef bint is_skipped
    cdef readonly bint had_credit
    # Multicast: watches while others wait for the taker, and while pre-settled deliveries do (`watch`).
    cdef object stall_watch
    cdef object skip_watch
    cdef readonly unsigned long long copies_missed
    # The part of copies_missed that is recorded already.
    cdef unsigned long long copies_told
    # For records: the level, and whether deliveries moved since the taker was looked at.
    cdef readonly unsigned char record_level
    cdef bint has_moved
    # Whether the receiver asks for a drain, and the number of drains not recorded yet.
    cdef bint is_asked
    cdef unsigned int drains
    cdef Carrier moving
    cdef Carrier newest
    cdef readonly int unsettled_count
    cdef readonly unsigned long long deliveries_out
    cdef unsigned long long last_tag
    # Number of producers behind the deliveries that this router sends here.
    cdef int weight
    cdef unsigned long long last_turn

    cdef int hold(self, Carrier carrier) except -1
    cdef int drop(self, Carrier carrier) except -1
    cdef list _oldest_first(self)
    cdef bint _let_go(self, Carrier carrier) except -1
    cdef int _note_written_in_session(self) except -1
    cdef int miss(self) except -1
    cdef int note_move(self) except -1
    cdef int note_drain(self, bint has_more) except -1
    cdef int set_credit(self, int credit) except -1
    cdef int sync(self) except -1
    cdef pn_delivery_t *start(self) except NULL
    cdef bint can_take_now(self) noexcept
    cdef bint is_near_now(self) noexcept
    cdef int join(self) except -1
    cdef int leave(self) except -1


cdef Carrier carrier_at(pn_delivery_t *delivery)
